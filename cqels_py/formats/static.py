"""Static data: files of any RDF format to columns of ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cqels_py.batches.elements import Ids
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError
from cqels_py.formats.compression import local_path, read_chunks
from cqels_py.formats.encodings import kind_of_json
from cqels_py.formats.endings import RDF, format_of
from cqels_py.formats.json_ld import JsonLd, file_iri
from cqels_py.formats.lines import line_blocks
from cqels_py.formats.ndjson import json_statements
from cqels_py.formats.ntriples import read_statements
from cqels_py.formats.turtle import nquads_blocks


def load_static(
    path: str, dictionary: Dictionary, scope: int, json_ld: JsonLd | None = None
) -> tuple[Ids, Ids, Ids, Ids]:
    """All statements of a file (.nt, .nq, .ttl, .trig, .rdf, .jsonld …; also .gz and .zst): subject, predicate, object,
    graph.

    The graph is 0 for the default graph. Blank nodes belong to `scope`, which must be unique to this document.
    DataError gives the place of malformed input. UsageError: the file does not exist or has an unknown suffix.
    """
    form = format_of(path, RDF)
    blocks = _blocks(path, form, replace(json_ld or JsonLd(), base=file_iri(local_path(path))))
    parts = list(read_statements(blocks, dictionary, scope, path, _stop))
    subject, predicate, object_, graph = np.concatenate(parts, axis=1)
    return subject, predicate, object_, graph


def load_static_text(text: bytes, dictionary: Dictionary, scope: int) -> tuple[Ids, Ids, Ids, Ids]:
    """All statements of a text of N-Triples or N-Quads; arguments and result as in `load_static`."""
    source = "<static data>"
    blocks = line_blocks(iter([text]), source, _stop)
    subject, predicate, object_, graph = np.concatenate(
        [np.empty((4, 0), np.int64), *read_statements(blocks, dictionary, scope, source, _stop)], axis=1
    )
    return subject, predicate, object_, graph


def _blocks(path: str, form: str, json_ld: JsonLd) -> Iterator[tuple[bytes, int]]:
    chunks = read_chunks(path)
    if form == "json":
        kind, chunks = kind_of_json(chunks)
        if kind == "ndjson":
            return json_statements(line_blocks(chunks, path, _stop), path, _stop, json_ld)
        form = kind
    if form in ("nt", "nq"):
        return line_blocks(chunks, path, _stop)
    return ((text, 1) for text in nquads_blocks(chunks, form, path, _stop, json_ld))


def _stop(error: DataError) -> None:
    raise error
