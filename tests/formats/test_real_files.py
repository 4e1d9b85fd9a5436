"""Published data, if available: the same statements as another parser reads."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pyoxigraph
import pytest

from cqels_py.dictionary import Dictionary
from cqels_py.formats.static import load_static

DATA = Path(os.environ.get("CQELS_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))
FILES = {
    "srbench/lsd_stations.nt.gz": pyoxigraph.RdfFormat.N_TRIPLES,
    "lsbench/data/rdfPostStream1000.ttl.gz": pyoxigraph.RdfFormat.TURTLE,
}


@pytest.mark.parametrize("name", FILES)
def test_published_files_are_read_as_another_parser_reads_them(name: str) -> None:
    path = DATA / name
    if not path.exists():
        pytest.skip("the published data are not here")
    dictionary = Dictionary()
    columns = load_static(str(path), dictionary, 1)
    parsed = list(pyoxigraph.parse(gzip.decompress(path.read_bytes()), FILES[name]))
    for column, part in zip(columns, ("subject", "predicate", "object"), strict=False):
        assert np.array_equal(column, dictionary.encode([str(getattr(quad, part)) for quad in parsed]))
    assert not columns[3].any()
