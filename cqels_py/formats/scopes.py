"""To what the labels of blank nodes belong: a label is one node there, and another one elsewhere."""

from __future__ import annotations

import hashlib
from typing import Final

from cqels_py.errors import UsageError

SOURCE: Final = "source"
ELEMENT: Final = "element"
_KINDS: Final = {
    SOURCE: (
        "a label is one node in all of its source (a file, standard input); in what is pushed, in its push or its line of "
        "NDJSON; in push_batch and in data frames in its element, or in the document that is named"
    ),
    ELEMENT: "a label is one node in its element, and another one in each other element",
}


def check_blank_nodes(given: object) -> str:
    """SOURCE or ELEMENT. UsageError for anything else."""
    if given not in _KINDS:
        raise UsageError(f"blank_nodes is {' or '.join(map(repr, _KINDS))}, not {given!r}")
    return str(given)


def explained(blank_nodes: str) -> str:
    """What holds, in words."""
    return _KINDS[blank_nodes]


def scope_of_document(name: object) -> int:
    """The scope of a document by its name: the same in every process. UsageError for what is no name."""
    if not isinstance(name, str) or not name:
        raise UsageError(f"document is the name of what blank nodes belong to, a text, not {name!r}")
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
