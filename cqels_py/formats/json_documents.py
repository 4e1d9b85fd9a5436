"""Documents of JSON from outside, as Python's values."""

from __future__ import annotations

import json
import re
from typing import Any

from cqels_py.errors import DataError, Place
from cqels_py.formats.depth import check_depth

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def json_value(body: bytes, source: str | None = None) -> Any:
    """The value of a document in UTF-8. All of its texts can be written in UTF-8 again.

    DataError, with the place, for one that is none, is nested too deeply, or has half of a character: a surrogate without the
    other one.

    >>> json_value(b'{"a": [1, "\\\\ud83d\\\\ude00"]}')
    {'a': [1, '😀']}
    """
    check_depth(body, "json", source)
    try:
        text = body.decode("utf-8-sig")
        found = json.loads(text, parse_constant=_no_constant)
        if _SURROGATE.search(text):
            json.dumps(found, ensure_ascii=False).encode()
        return found
    except json.JSONDecodeError as error:
        raise DataError(f"no JSON: {error.msg}", Place(error.lineno, error.colno, source)) from None
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise DataError(
            f"no JSON: {half} is half of a character, and the other half is missing", Place(1, None, source)
        ) from None
    except (RecursionError, ValueError) as error:
        raise DataError(f"no JSON: {error}", Place(1, None, source)) from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no value")
