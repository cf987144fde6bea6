"""What can come of a Bot API call instead of an answer; apart from the client, which few load."""

import math

from function.telegram.bot_api import Json

AGAIN_SECONDS = 5  # from giving up a call to its next try, where the server names no time


class BotApiError(Exception):
    """A call that was not done. The text names the method and the reason, never the token."""


class Refused(BotApiError):
    """The server will never do this: the call is wrong, or the chat is closed to the bot."""

    def __init__(self, method: str, code: int, description: str, parameters: Json) -> None:
        super().__init__(f"{method}: {code} {description}")
        self.code = code
        self.description = description
        self.parameters = parameters


class Undelivered(BotApiError):
    """Not done within PATIENCE_SECONDS: no connection, no answer, 5xx, or too many requests.

    It may be done in `retry_after` seconds.
    """

    def __init__(self, text: str, retry_after: float = 0) -> None:
        super().__init__(text)
        self.retry_after = math.ceil(retry_after) or AGAIN_SECONDS
