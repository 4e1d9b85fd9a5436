"""Documents whose brackets are nested up to 100,000 deep, read in a process of its own: what a library does there may end it.

    python -m bench.suites.fuzzed.nested DOCUMENTS SEED

is that process: `run_apart` starts it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from bench.suites.fuzzed.promises import check_file, check_query
from cqels_py.dictionary import Dictionary
from cqels_py.engine.engine import Engine
from cqels_py.errors import CqelsError
from cqels_py.service.datasets import dataset_of
from cqels_py.sources.documents import document_elements
from cqels_py.sources.protocol import Opening

_ADDRESS_SPACE: Final = 6 << 30
_CPU_SECONDS: Final = 60
_DEPTHS: Final = (1, 30, 99, 300, 3_000, 30_000, 100_000)
_MOST_BYTES: Final = 1 << 20
_MOST_OF_QUERY: Final = 1 << 16

Nest = tuple[str, Sequence[tuple[str, str]], str]
"""What stands before, what opens and closes, and what stands behind."""
_TERMS: Final = [("<<(<a:a> <a:b> ", ")>>"), ("<<<a:a> <a:b> ", ">>")]
_TURTLE: Final = [
    *_TERMS,
    ("[ <a:b> ", "]"),
    ("( ", ")"),
    ("<a:c> {| <a:b> ", "|}"),
    ('"""', '"""'),
    ("'\\q . <a:a> <a:b> ", "'"),
]
_JSON: Final = [
    ('{"a:b":', "}"),
    ("[", "]"),
    ('{"@id":"a:a","@graph":', "}"),
    ('{"a:b":{"@list":', "}}"),
    ('{"@context":', ',"a:b":1}'),
]
NESTED: Final[Mapping[str, Nest]] = {
    "ttl": ("<a:a> <a:b> ", _TURTLE, "<a:c>"),
    "trig": ("<a:g> { <a:a> <a:b> ", [*_TURTLE, ("{ <a:a> <a:b> ", "}")], "<a:c>"),
    "nt": ("<a:a> <a:b> ", _TERMS, "<a:c>"),
    "nq": ("<a:a> <a:b> ", _TERMS, "<a:c>"),
    "jsonld": ("", _JSON, '"x"'),
    "ndjson": ("", _JSON, '"x"'),
    "rdf": (
        '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="a:">',
        [("<e:a><e:b>", "</e:b></e:a>"), ("<e:a>", "</e:a>"), ('<e:a e:c=">"><!-- <e:a> -->', "</e:a>")],
        "",
    ),
    "rq": (
        "SELECT * { STREAM <a:s> [NOW] { ?s ?p ?o } ",
        [("{ ?s ?p ?o . ", "}"), ("FILTER(?o = (", "))"), ("OPTIONAL { ?s ?p ?o ", "}"), ("[ <a:b> ", "]"), ("FILTER EXISTS {", "}"),
         ("?s (", "?p) ?o ."), ("?s ?p ((", "))"), ("FILTER(!(", "))"), ("BIND(ABS(", ") AS ?x)")],
        "",
    ),
}  # fmt: skip
"""By format; "rq": query texts."""


def documents(form: str, count: int, random: Random) -> Iterator[str]:
    """First one for each kind of brackets, as deep as possible, then random ones: some are not closed, or end in the middle."""
    _, brackets, _ = NESTED[form]
    for pair in brackets:
        yield _document(form, [pair] * _DEPTHS[-1], _DEPTHS[-1])
    for _ in range(count):
        few, depth = random.sample(brackets, random.choice((1, 1, 2, len(brackets)))), random.choice(_DEPTHS)
        yield _document(form, random.choices(few, k=depth), random.choice((0, depth, depth, depth // 2)))


def _document(form: str, opened: Sequence[tuple[str, str]], close: int) -> str:
    before, _, inner = NESTED[form]
    most = _MOST_OF_QUERY if form == "rq" else _MOST_BYTES
    opened = opened[: most // max(len(opening + closing) for opening, closing in opened)]
    end = "\n.\n" if form in ("ttl", "trig", "nt", "nq") else ""
    return (
        before
        + "".join(each for each, _ in opened)
        + inner
        + "".join(each for _, each in reversed(opened[:close]))
        + end
    )


def check(form: str, text: str, folder: Path) -> None:
    """Read a document at each entrance: only CqelsErrors are raised."""
    if form == "rq":
        check_query(text)
        with suppress(CqelsError):
            dataset_of(text, "a:")
        return
    check_file(form, text.encode(), folder)
    if form != "rdf":
        opening = Opening(stream="a:s", number=0, dictionary=Dictionary(), on_error="stop")
        with suppress(CqelsError):
            document_elements(text.encode(), form, opening, source="body", arrival=1)
    if form == "jsonld":
        with suppress(CqelsError, ValueError, RecursionError):
            Engine().push("a:s", json.loads(text), time=1)


def run_apart(count: int, seed: int) -> int:
    """Read documents of each form, so many random ones, in a process of its own; returns how many were read.

    AssertionError if the process ends in another way than by itself.
    """
    asked = [sys.executable, "-m", "bench.suites.fuzzed.nested", str(count), str(seed)]
    ended = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, (
        f"seed {seed}: status {ended.returncode} at {ended.stdout.split()}: {ended.stderr[-2000:]}"
    )
    return int(ended.stdout.split()[-1])


def main(count: int, seed: int) -> None:
    """In the process: with limits of memory and CPU time, in a thread, whose stack is that of the service's."""
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS + 2 * count, _CPU_SECONDS + 2 * count + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    failed: list[BaseException] = []

    def run() -> None:
        random, read = Random(seed), 0
        try:
            with TemporaryDirectory() as folder:
                for form in NESTED:
                    print(form, flush=True)
                    for text in documents(form, count, random):
                        check(form, text, Path(folder))
                        read += 1
            print(read)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
