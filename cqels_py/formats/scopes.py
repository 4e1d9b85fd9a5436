"""The scope of blank node labels: a label denotes one node within its scope, and another node elsewhere."""

from __future__ import annotations

import hashlib
from typing import Final

from cqels_py.errors import UsageError

SOURCE: Final = "source"
ELEMENT: Final = "element"
_KINDS: Final = {
    SOURCE: (
        "a label denotes one node within its source (a file, standard input); in pushed data, within its push or its line of "
        "NDJSON; in push_batch and in data frames, within its element or the named document"
    ),
    ELEMENT: "a label denotes one node within its element, and another node elsewhere",
}


def check_blank_nodes(given: object) -> str:
    """SOURCE or ELEMENT. UsageError for anything else."""
    if given not in _KINDS:
        raise UsageError(f"blank_nodes is {' or '.join(map(repr, _KINDS))}, not {given!r}")
    return str(given)


def explained(blank_nodes: str) -> str:
    """The rule in words, for `explain`."""
    return _KINDS[blank_nodes]


def scope_of_document(name: object) -> int:
    """The scope of a document by its name, equal in every process. UsageError for a name that is not a text."""
    if not isinstance(name, str) or not name:
        raise UsageError(f"document must be a text that names the scope of blank nodes, not {name!r}")
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
