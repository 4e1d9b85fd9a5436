"""JSON-LD contexts that documents name by IRI: inserted before the document is parsed, never fetched.

A document must not be able to make this program read a file or contact a server. The user supplies every context that
is named.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from cqels_py.errors import DataError, Place, UsageError
from cqels_py.formats.depth import check_depth

Json: TypeAlias = Any
Contexts: TypeAlias = Mapping[str, Json]
"""Contexts by the IRIs under which documents name them: the values of "@context"."""

NO_CONTEXTS: Contexts = {}
NOT_LOADED = "No LoadDocumentCallback"
"""The library's message for a context that it would have to fetch."""

_SHOWN = 200
"""The number of characters of an IRI that a message shows."""
_CONTEXT, _IMPORT = "@context", "@import"
_KEY = b'"@context"'
_NAMED = re.compile(rb'"(?:@context"\s*:\s*(?:\[[^\]"{]*)?|@import"\s*:\s*)"([^"]*)"')


def read_contexts(given: Mapping[str, Any] | None) -> dict[str, Json]:
    """Contexts by IRI, given as files or as objects {"@context": …}. UsageError for anything else."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(iri, str) for iri in given):
        raise UsageError(f"contexts is a mapping, {{iri: file}}, not {given!r}")
    return {str(iri): _context_of(str(iri), source) for iri, source in given.items()}


def _context_of(iri: str, source: Any) -> Json:
    document = _read(iri, source) if isinstance(source, str | Path) else source
    if not isinstance(document, Mapping) or _CONTEXT not in document:
        raise UsageError(f'the context <{iri}>: expected a JSON object with the key "@context"')
    return document[_CONTEXT]


def _read(iri: str, path: str | Path) -> Json:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"the context <{iri}>: cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the context <{iri}>: {path} is not JSON: {error}") from None


# --- in documents -----------------------------------------------------------------------------------------------------


def with_contexts(chunks: Iterable[bytes], contexts: Contexts, source: str) -> Iterator[bytes]:
    """A document with its contexts inserted, held in memory. Without supplied contexts the chunks pass through unchanged."""
    if not contexts:
        yield from chunks
    else:
        yield inlined(b"".join(chunks), contexts, source)


def inlined(text: bytes, contexts: Contexts, source: str, line: int | None = None) -> bytes:
    """A document with the contexts that it names inserted. Invalid JSON is returned unchanged, for the parser to
    report.

    DataError names a context that was not supplied. `line`: the line of the document in its source.
    """
    if not contexts or _KEY not in text:
        return text
    check_depth(text, "jsonld", source, line)
    try:
        document = json.loads(text.decode("utf-8-sig"), parse_int=_Number, parse_float=_Number)
        return _written(_with_contexts(document, contexts, ())).encode()
    except _Missing as missing:
        raise not_supplied(missing.iri, source, line) from None
    except _Unfit as unfit:
        raise _placed(str(unfit), source, line) from None
    except RecursionError:
        raise _placed("the document is nested too deeply", source, line) from None
    except ValueError:
        return text


def not_supplied(iri: str, source: str, line: int | None) -> DataError:
    """The error for a context that was named but not supplied."""
    # A lone surrogate cannot be printed.
    shown = iri.encode("utf-8", "replace").decode()
    shown = shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"
    return _placed(
        f"the context <{shown}> is named by its IRI, and contexts are not fetched: give it with --context {shown}=FILE "
        f"(in Python, contexts={{{shown!r}: file}})",
        source,
        line,
    )


def named_in(text: bytes) -> str | None:
    """The first context that a document names by IRI, as far as this can be seen without parsing it."""
    found = _NAMED.search(text)
    return None if found is None else found[1].decode("utf-8", "replace")


def _placed(message: str, source: str, line: int | None) -> DataError:
    return DataError(f"{source}: {message}") if line is None else DataError(message, Place(line, None, source))


class _Missing(Exception):
    def __init__(self, iri: str) -> None:
        super().__init__(iri)
        self.iri = iri


class _Unfit(Exception):
    """A context that cannot be inserted where it is named."""


class _Number(str):
    """A number as written: parsing it would change its digits."""

    __slots__ = ()


def _with_contexts(value: Json, contexts: Contexts, within: tuple[str, ...]) -> Json:
    """The value with all named contexts inserted. `within`: the contexts around this value, to find cycles."""
    if isinstance(value, list):
        return [_with_contexts(each, contexts, within) for each in value]
    if not isinstance(value, Mapping) or (value.get("@type") == "@json" and "@value" in value):
        return value
    return {
        key: _context(each, contexts, within) if key == _CONTEXT else _with_contexts(each, contexts, within)
        for key, each in value.items()
    }


def _context(value: Json, contexts: Contexts, within: tuple[str, ...]) -> Json:
    """The value of "@context": an IRI, definitions, null, or a list of these."""
    if isinstance(value, list):
        return [one for each in value for one in _listed(_context(each, contexts, within))]
    if _is_text(value):
        found = _supplied(value, contexts, within)
        # The document's own base applies, not that of the context.
        return _without_base(_context(found, contexts, (*within, value)))
    if isinstance(value, Mapping):
        definitions = {key: each for key, each in value.items() if key != _IMPORT}
        if _IMPORT in value:
            definitions = {**_imported(value[_IMPORT], contexts, within), **definitions}
        return _with_contexts(definitions, contexts, within)
    return value


def _imported(iri: Json, contexts: Contexts, within: tuple[str, ...]) -> Mapping[str, Json]:
    """The definitions of an @import in a context. They must not import others themselves."""
    found = _supplied(iri, contexts, within) if _is_text(iri) else None
    if not isinstance(found, Mapping) or _IMPORT in found:
        raise _Unfit(f"the context {iri!r} cannot be imported: it has to be one object, without @import")
    return found


def _supplied(iri: str, contexts: Contexts, within: tuple[str, ...]) -> Json:
    if iri not in contexts:
        raise _Missing(iri)
    if iri in within:
        raise _Unfit(f"the context <{iri}> names itself")
    return contexts[iri]


def _is_text(value: Json) -> bool:
    return isinstance(value, str) and not isinstance(value, _Number)


def _without_base(context: Json) -> Json:
    if isinstance(context, list):
        return [_without_base(each) for each in context]
    if isinstance(context, Mapping):
        return {key: each for key, each in context.items() if key != "@base"}
    return context


def _listed(context: Json) -> list[Json]:
    return context if isinstance(context, list) else [context]


def _written(value: Json) -> str:
    """JSON text, with numbers as they were written."""
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(key)}:{_written(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    return json.dumps(value)
