"""Prints the name under which the log has a user: its `user` field is a hash under the token.

Exits with 0, or with 2 if there is no token: then each process has a key of its own.
"""

import argparse
import sys

from function.observability.events import pseudonym
from function.settings import SettingsError
from tools.settings import load_settings_with_token


def main(arguments: list[str] | None = None) -> int:
    """Print the pseudonym of the user on the command line and return the exit status."""
    parser = argparse.ArgumentParser(prog="pseudonym", description=__doc__)
    parser.add_argument("user", type=int, metavar="ID", help="the user's id, a number")
    options = parser.parse_args(arguments)
    try:
        settings = load_settings_with_token()
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    print(pseudonym(options.user, settings.token))
    return 0


if __name__ == "__main__":
    sys.exit(main())
