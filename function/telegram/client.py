"""Calls to a Bot API server: Telegram's own, or a local one (https://core.telegram.org/bots/api).

What can be cured is: a rate limit is waited for, a moved chat followed, a text sent plainly when
its entities are refused. The token is in every URL, so no error or log line here shows one.
"""

import json
import logging
import random
import time
from typing import Any

import urllib3

from function.errors import Refused, Undelivered
from function.telegram.body import encode
from function.telegram.types import Json

log = logging.getLogger(__name__)
logging.getLogger("urllib3").setLevel(logging.WARNING)  # below that it logs URLs

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 15.0
TIMEOUT_SECONDS = 25.0  # for all tries of a call
FIRST_PAUSE_SECONDS = 0.5
CONNECTIONS = 64  # kept open; as many as the service has threads
CURES = 3  # of one call, each by changing it


class BotApi:
    """A client for one bot; safe to use from many threads. Every method may raise BotApiError.

    No try of a call is begun more than `timeout` seconds after the first.
    """

    def __init__(self, token: str, base_url: str, timeout: float = TIMEOUT_SECONDS) -> None:
        self._token = token
        self._base_url = base_url.rstrip("/")
        self._timeout = timeout
        self._pool = urllib3.PoolManager(maxsize=CONNECTIONS, retries=False)

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._pool.clear()

    def deliver(self, call: Json) -> Any:
        """Make a call such as `{"method": "sendMessage", ...}`, curing what can be cured.

        Returns the result; None where there is nobody to tell any more (403), or nothing to do.
        """
        params = dict(call)
        method = params.pop("method")
        for _ in range(CURES):
            try:
                return self.call(method, params)
            except Refused as error:
                if error.code == 403 or "message is not modified" in error.description.lower():
                    log.info("not delivered: %s", error)
                    return None
                cured = cure(params, error)
                if cured is None:
                    raise
                log.info("tried again in another form: %s", error)
                params = cured
        return self.call(method, params)

    def call(
        self, method: str, params: Json | None = None, answer_seconds: float = ANSWER_SECONDS
    ) -> Any:
        """Make a call as it is and return its result, waiting out rate limits and outages.

        A call whose answer was lost is made again, so it may be done twice.
        """
        deadline = time.monotonic() + self._timeout
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return self._call_once(method, params or {}, answer_seconds)
            except Undelivered as error:
                # Half to all of a pause, so that many callers do not come back at once.
                wait = error.seconds or pause * (1 + random.random()) / 2  # nosec B311
                if time.monotonic() + wait > deadline:
                    raise
            time.sleep(wait)
            pause *= 2

    def fetch_text(self, file_id: str, max_bytes: int) -> str:
        """Return the content of a file that was sent to the bot.

        Raises ValueError for a file that is longer, is no text in UTF-8, or is gone.
        """
        try:
            path = self.call("getFile", {"file_id": file_id})["file_path"]
            content = self._download(path, max_bytes)
        except (Refused, KeyError, TypeError):
            raise ValueError("the file cannot be had") from None
        if len(content) > max_bytes:
            raise ValueError(f"the file is longer than {max_bytes} bytes")
        return content.decode("utf-8-sig")

    def _download(self, path: str, max_bytes: int) -> bytes:
        """Return a file, or its first `max_bytes` + 1 bytes."""
        url = f"{self._base_url}/file/bot{self._token}/{path}"
        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=ANSWER_SECONDS)
        try:
            response = self._pool.request("GET", url, timeout=timeout, preload_content=False)
            try:
                if response.status != 200:
                    raise Refused("getFile", response.status, "no such file", {})
                return response.read(max_bytes + 1)
            finally:
                response.close()
        except urllib3.exceptions.HTTPError as error:
            raise Undelivered(f"getFile: {type(error).__name__}") from None

    def _call_once(self, method: str, params: Json, answer_seconds: float) -> Any:
        body, content_type = encode(params)
        try:
            response = self._pool.request(
                "POST",
                f"{self._base_url}/bot{self._token}/{method}",
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=answer_seconds),
                body=body,
                headers={"Content-Type": content_type},
            )
        except urllib3.exceptions.HTTPError as error:
            raise Undelivered(f"{method}: {type(error).__name__}") from None
        try:
            answer = json.loads(response.data)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise Undelivered(f"{method}: {response.status} and no JSON object")
        if answer.get("ok") is True:
            return answer.get("result")
        code, parameters = answer.get("error_code"), answer.get("parameters")
        code = code if isinstance(code, int) else response.status
        parameters = parameters if isinstance(parameters, dict) else {}
        refused = Refused(method, code, str(answer.get("description", "")), parameters)
        if refused.code == 429:
            raise Undelivered(str(refused), float(refused.parameters.get("retry_after", 1)))
        raise Undelivered(str(refused)) if refused.code >= 500 else refused


def cure(params: Json, error: Refused) -> Json | None:
    """Return other parameters with which a refused call should be done, or None.

    The server's descriptions are in telegram-bot-api's Client.cpp and tdlib; none is documented.
    """
    description = error.description.lower()
    migrated = error.parameters.get("migrate_to_chat_id")
    if isinstance(migrated, int) and migrated != params.get("chat_id"):
        return params | {"chat_id": migrated}
    if "too long" in description:
        for name in ("text", "caption"):
            if len(text := params.get(name, "")) > 1:
                shorter = {name: text[: len(text) // 2] + "…"}
                return _without(params, "entities", "caption_entities") | shorter
    curable = (
        ("entit", ("entities", "caption_entities", "parse_mode")),
        ("repl", ("reply_parameters",)),
        ("thread", ("message_thread_id",)),
        ("topic", ("message_thread_id",)),
    )
    for word, names in curable:
        if word in description and any(name in params for name in names):
            return _without(params, *names)
    return None


def _without(params: Json, *names: str) -> Json:
    return {name: value for name, value in params.items() if name not in names}
