"""The service's settings, for tools that act as the bot."""

import os

from function.settings import Settings, SettingsError, load_settings


def load_settings_with_token() -> Settings:
    """Read the settings as the service does. Raises SettingsError, without a token as well."""
    settings = load_settings(os.environ)
    if not settings.token:
        raise SettingsError("No TOKEN: write it into the config that CONFIG_PATH names.")
    return settings
