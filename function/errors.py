"""Failures that cross rooms: raised where they happen, worded in answers/, a status in http/."""

import math
from collections.abc import Mapping
from typing import Any, Literal

RETRY_SECONDS = 5  # from giving up a call to its next try, where the server names no time

Reason = Literal["busy", "unavailable", "updates", "leased", "user_concurrent", "user_rate"]


class Busy(Exception):
    """A request cannot be answered now.

    `reason` is a key of the limits in answers/sentences.toml; `retry_after` is in seconds.
    """

    def __init__(self, reason: Reason, retry_after: int = 2) -> None:
        super().__init__(f"{reason}: try again in {retry_after} s")
        self.reason: Reason = reason
        self.retry_after = retry_after


class TooMany(Busy):
    """A user's own limit is reached, which only the user can cure."""


class BotApiError(Exception):
    """A call that was not done. The text names the method and the reason, never the token."""


class Refused(BotApiError):
    """The server will never do this: the call is wrong, or the chat is closed to the bot."""

    def __init__(
        self, method: str, code: int, description: str, parameters: Mapping[str, Any]
    ) -> None:
        super().__init__(f"{method}: {code} {description}")
        self.code = code
        self.description = description
        self.parameters = parameters


class Undelivered(BotApiError):
    """Not done in time: no connection, no answer, 5xx, or too many requests.

    It may be done if made again, after `seconds` where the server names a time.
    """

    def __init__(self, text: str, seconds: float = 0) -> None:
        super().__init__(text)
        self.seconds = seconds
        self.retry_after = math.ceil(seconds) or RETRY_SECONDS
