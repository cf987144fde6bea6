"""A call as an HTTP body, to a Bot API server or in the response to a webhook.

Files need multipart/form-data, in which all else is a text or JSON
(https://core.telegram.org/bots/api#making-requests, #sending-files).
"""

import json
from typing import Any

from function.telegram.types import File, Json


def encode(params: Json) -> tuple[bytes, str]:
    """Return parameters as a body and its content type; any of them may be or hold a File."""
    try:
        return json.dumps(params).encode(), "application/json"
    except TypeError:  # a File is no JSON
        return _multipart(params)


def _multipart(params: Json) -> tuple[bytes, str]:
    files = {name: value for name, value in params.items() if isinstance(value, File)}

    def attach(value: Any) -> str:
        if not isinstance(value, File):
            raise TypeError(f"{type(value).__name__} is not JSON")
        name = f"file{len(files)}"
        files[name] = value
        return f"attach://{name}"

    rest = {name: value for name, value in params.items() if name not in files}
    body = json.dumps(rest, default=attach)
    from urllib3.filepost import encode_multipart_formdata  # 30 ms, for the first picture

    fields: dict[str, Any] = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in json.loads(body).items()
    }
    fields |= {name: (file.name, file.content, file.type) for name, file in files.items()}
    return encode_multipart_formdata(fields)
