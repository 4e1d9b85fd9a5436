"""The kernels that reading and writing call, by format: compiled when a source or a sink is opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cqels_py.kernels.compiler.manifest import KernelCall, manifest

_STATEMENTS: Final = ("ntriples", "times", "depth")
_READING: Final[Mapping[str, tuple[str, ...]]] = {
    "nq": (*_STATEMENTS, "lines"),
    "nt": (*_STATEMENTS, "lines", "nesting"),
    "trig": _STATEMENTS,
    "ttl": (*_STATEMENTS, "nesting"),
    "rdf": (*_STATEMENTS, "nesting"),
    "jsonld": (*_STATEMENTS, "nesting"),
    "json": (*_STATEMENTS, "lines", "nesting"),
    "ndjson": (*_STATEMENTS, "lines"),
    "csv": ("tabular", "times", "lines"),
    "tsv": ("tabular", "times", "lines"),
    "parquet": ("tabular", "times"),
    "arrow": ("tabular", "times"),
    "jelly": (*_STATEMENTS, "nesting"),
}
"""Modules of `cqels_py.formats` that call kernels, by the formats of `formats.endings`; "arrow" also: tables in memory."""

_WRITING: Final[Mapping[str, str]] = {
    "json": "rendering",
    "csv": "rendering",
    "tsv": "rendering",
    "nquads": "graphs",
    "turtle": "graphs",
    "trig": "graphs",
    "jelly": "graphs",
}


def calls_to_read(form: str) -> list[KernelCall]:
    """The part of the manifest that reading a format needs. Static data is read as N-Quads ("nq") whatever its format."""
    return _calls_of(_READING[form])


def calls_to_write(form: str) -> list[KernelCall]:
    """The part of the manifest that writing results in a format needs; none for "table", which is written in Python."""
    return _calls_of((_WRITING[form],)) if form in _WRITING else []


def _calls_of(modules: tuple[str, ...]) -> list[KernelCall]:
    callers = {f"cqels_py.formats.{module}" for module in modules}
    return [call for call in manifest() if call.caller in callers]
