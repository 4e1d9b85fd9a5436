"""A query over sources that end, in one call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cqels_py.engine.engine import Engine
from cqels_py.engine.result import Result
from cqels_py.errors import UsageError
from cqels_py.sources.opened import StreamSource
from cqels_py.sources.static import StaticSource

_MOST = 1 << 62


def query(
    text: str,
    *,
    streams: Mapping[str, StreamSource],
    static: Iterable[StaticSource] | StaticSource = (),
    static_graphs: Mapping[str, StaticSource] | None = None,
    maps: Mapping[str, Any] | None = None,
    changelog: bool = False,
    **options: Any,
) -> Iterator[Result]:
    """The results of a query over files, tables or other sources that end, `streams` by IRI, all read before the first result.

    `maps` is as of `Engine.run`, `static`, `static_graphs` and `changelog` as of `Engine.register`, and other options are those of
    `Engine`. Raises their errors.

    >>> for row in query("SELECT ?s ?t …", streams={"http://ex.org/readings": "readings.nq"}):  # doctest: +SKIP
    ...     print(row.bindings["t"])
    """
    if not isinstance(streams, Mapping):
        raise UsageError(
            f'streams is a mapping of IRIs to sources, such as {{"http://ex.org/s": "s.nq"}}, not {streams!r}'
        )
    engine = Engine(**{"max_waiting": _MOST, **options})
    try:
        asked = engine.register(text, static=static, static_graphs=static_graphs, changelog=changelog)
        engine.run(streams, maps=maps)
        engine.finish()
    finally:
        engine.close()
    return asked.results()
