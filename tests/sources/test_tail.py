"""A file that grows: its lines as they are written, rotation, cuts, and where it goes on after a restart."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from cqels_py.dictionary import Dictionary
from cqels_py.engine.engine import Engine, Statistics
from cqels_py.errors import DataError, UsageError
from cqels_py.formats.input_wait import InputWait
from cqels_py.mappings.mapping import Mapping
from cqels_py.sources import tail
from cqels_py.sources.protocol import Opening, Source
from cqels_py.sources.urls import source_of
from cqels_py.testing import check_source
from tests.support.live_runs import run_until
from tests.support.servers import wait_until

STREAM = "http://example.org/readings"
MAP = Mapping.of(
    "PREFIX : <http://example.org/> CONSTRUCT { ?s :v ?value } WHERE { BIND(IRI(CONCAT('http://example.org/', ?sensor)) AS ?s) }"
)
V = "<http://example.org/v>"
GENERATED = "<http://www.w3.org/ns/prov#generatedAtTime>"
INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"
DATE = "^^<http://www.w3.org/2001/XMLSchema#dateTime>"
FORMATS = ("nq", "nt", "ndjson", "csv", "tsv")


def moment(n: int) -> str:
    return f"1970-01-01T00:00:{n:02d}Z"


def text(form: str, *numbers: int) -> str:
    """Elements of one triple each, or of two where the format has the time as one."""
    if form == "nq":
        return "".join(f'<g:{n}> {GENERATED} "{moment(n)}"{DATE} .\n<g:s{n}> {V} "{n}" <g:{n}> .\n' for n in numbers)
    if form == "nt":
        return "".join(f'<g:s{n}> {GENERATED} "{moment(n)}"{DATE} .\n<g:s{n}> {V} "{n}" .\n' for n in numbers)
    if form == "ndjson":
        return "".join(
            json.dumps({"@id": f"g:s{n}", V[1:-1]: f"{n}", GENERATED[1:-1]: {"@value": moment(n), "@type": DATE[3:-1]}})
            + "\n"
            for n in numbers
        )
    if form == "csv":
        return "".join(f'{moment(n)},<g:s{n}>,{V},"""{n}"""\n' for n in numbers)
    return "".join(f'{moment(n)}\t<g:s{n}>\t{V}\t"{n}"\n' for n in numbers)


def head(form: str) -> str:
    return {"csv": "time,subject,predicate,object\n", "tsv": "time\tsubject\tpredicate\tobject\n"}.get(form, "")


def opened(url: str, flush_after: float | None = 0.0, **more: Any) -> Source:
    if "time_predicate" not in more and ".nt" in url:
        more["time_predicate"] = GENERATED
    wait = InputWait(flush_after, 30)
    return source_of(url).open(Opening(stream=STREAM, number=0, dictionary=Dictionary(), wait=wait, **more))


def seconds(source: Source, wanted: int) -> list[int]:
    """The times of so many elements, in seconds; each has a second of its own."""
    found: list[int] = []

    def enough() -> bool:
        batch = source.poll()
        found.extend([] if batch is None else (batch.time // 1_000_000).tolist())
        return len(found) >= wanted

    wait_until(enough, f"{wanted} elements")
    return found


def settled(source: Source) -> list[int]:
    """What is there until nothing more comes."""
    found: list[int] = []
    quiet = 0
    while quiet < 3:
        batch = source.poll()
        assert batch is not None
        quiet = 0 if len(batch) else quiet + 1
        found += (batch.time // 1_000_000).tolist()
    return found


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InputWait, "pause", 0.001)
    monkeypatch.setattr(tail, "_LINGER", 0.01)


@pytest.mark.parametrize("form", FORMATS)
def test_it_keeps_the_protocol(form: str, tmp_path: Path) -> None:
    numbers = range(1, 6)
    triples = {n: [(f"<g:s{n}>", V, f'"{n}"')] for n in numbers}
    for n in numbers:
        if form in ("nt", "ndjson"):
            triples[n].append((f"<g:s{n}>", GENERATED, f'"{moment(n)}"{DATE}'))
    if form == "nt":
        # Its time needs a predicate, which the check does not give.
        return
    right, wrong = tmp_path / f"right.{form}", tmp_path / f"wrong.{form}"
    right.write_text(head(form) + text(form, *numbers))
    wrong.write_text(head(form) + text(form, 1, 2) + '"nonsense\n' + text(form, 3, 4, 5))
    expected = [(n * 1_000_000, triples[n]) for n in numbers]
    check_source(lambda: source_of(f"tail:{right}"), expected, malformed=lambda: source_of(f"tail:{wrong}"), seconds=5)
    check_source(lambda: source_of(f"tail:{right}?position={tmp_path / 'position'}"), expected, resumes=True, seconds=5)


def test_rows_through_a_map(tmp_path: Path) -> None:
    for form in ("ndjson", "csv"):
        file = tmp_path / f"readings.{form}"
        rows = [(n, f"s{n}", n) for n in range(1, 6)]
        file.write_text(
            "".join(json.dumps(dict(zip(("time", "sensor", "value"), row, strict=True))) + "\n" for row in rows)
            if form == "ndjson"
            else "time,sensor,value\n" + "".join(f"{n},{sensor},{value}\n" for n, sensor, value in rows)
        )
        expected = [(n, [(f"<http://example.org/s{n}>", V, f'"{n}"{INTEGER}')]) for n in range(1, 6)]
        url = f"tail:{file}?position={file}.at"
        check_source(lambda url=url: source_of(url), expected, map=MAP, resumes=True, seconds=5)


@pytest.mark.parametrize("form", FORMATS)
def test_lines_as_they_are_written(form: str, tmp_path: Path) -> None:
    """A line that is not whole waits; a last element is complete when nothing comes."""
    file = tmp_path / f"readings.{form}"
    whole = text(form, 1, 2)
    # A subject that has its time could be complete: there the line that is not whole is that of its time.
    cut = len(text(form, 2)) - 5 if form == "nt" else 20
    file.write_text(head(form) + whole[:-cut])
    source = opened(f"tail:{file}")
    assert settled(source) == [1]
    with file.open("a") as writer:
        writer.write(whole[-cut:])
    assert settled(source) == [2]
    with file.open("a") as writer:
        writer.write(text(form, 3, 4))
    assert settled(source) == [3, 4]
    source.close()


@pytest.mark.parametrize("form", ["nq", "csv"])
def test_an_element_that_was_complete_gets_no_more(form: str, tmp_path: Path) -> None:
    file = tmp_path / f"readings.{form}"
    file.write_text(head(form) + text(form, 1))
    split: list[DataError] = []
    source = opened(f"tail:{file}", on_split=split.append)
    assert settled(source) == [1]
    with file.open("a") as writer:
        writer.write(text(form, 1).splitlines(keepends=True)[-1] + text(form, 2))
    assert settled(source) == [2]
    assert [str(error.element) for error in split] != []
    source.close()


@pytest.mark.parametrize("form", FORMATS)
def test_rotation(form: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The old file is read to its end, also what its writer adds after it has been renamed; then the new one."""
    file = tmp_path / f"readings.{form}"
    file.write_text(head(form) + text(form, 1))
    source = opened(f"tail:{file}")
    assert seconds(source, 1) == [1]
    old = file.rename(tmp_path / f"readings.1.{form}")
    with old.open("a") as writer:
        writer.write(text(form, 2))
        writer.flush()
        file.write_text(head(form) + text(form, 4))
        writer.write(text(form, 3).removesuffix("\n"))
    with caplog.at_level(logging.WARNING):
        assert seconds(source, 3) == [2, 3, 4]
    assert "another file is there now" in caplog.text
    with file.open("a") as writer:
        writer.write(text(form, 5))
    assert seconds(source, 1) == [5]
    source.close()


def test_a_cut_is_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "readings.nq"
    file.write_text(text("nq", 1, 2, 3))
    source = opened(f"tail:{file}")
    assert settled(source) == [1, 2, 3]
    file.write_text(text("nq", 4))
    with caplog.at_level(logging.WARNING):
        assert seconds(source, 1) == [4]
    assert "has been cut" in caplog.text
    source.close()


def test_a_file_that_is_written_anew_and_is_longer_is_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its size alone does not tell; with copytruncate it may be so at the next look."""
    file = tmp_path / "readings.nq"
    file.write_text(text("nq", 1, 2))
    source = opened(f"tail:{file}")
    assert settled(source) == [1, 2]
    file.write_text(text("nq", 3, 4, 5))
    with caplog.at_level(logging.WARNING):
        assert seconds(source, 3) == [3, 4, 5]
    assert "has been cut" in caplog.text
    source.close()


def test_a_file_that_is_gone_for_a_while(tmp_path: Path) -> None:
    file = tmp_path / "readings.nq"
    file.write_text(text("nq", 1))
    source = opened(f"tail:{file}")
    assert settled(source) == [1]
    file.unlink()
    assert settled(source) == []
    file.write_text(text("nq", 2))
    assert seconds(source, 1) == [2]
    source.close()


@pytest.mark.parametrize("form", ["nq", "csv"])
def test_from_the_end(form: str, tmp_path: Path) -> None:
    """What stands there is passed over, but not a line that has begun."""
    file = tmp_path / f"readings.{form}"
    last = text(form, 3)
    file.write_text(head(form) + text(form, 1, 2) + last[:10])
    source = opened(f"tail:{file}?start=end")
    assert settled(source) == []
    with file.open("a") as writer:
        writer.write(last[10:])
    assert settled(source) == [3]
    source.close()


@pytest.mark.parametrize("form", FORMATS)
def test_a_restart_goes_on_behind_the_commit(form: str, tmp_path: Path) -> None:
    """Also in a file that has been renamed meanwhile, and with elements that were complete by a pause or by others."""
    file = tmp_path / f"readings.{form}"
    url = f"tail:{file}?position={tmp_path / 'at'}"
    file.write_text(head(form) + text(form, 1, 2))
    source = opened(url)
    assert settled(source) == [1, 2]
    with file.open("a") as writer:
        writer.write(text(form, 3, 4))
    found = seconds(source, 1)
    source.commit(source.position())
    source.close()
    with file.open("a") as writer:
        writer.write(text(form, 5))
    file.rename(tmp_path / f"readings.1.{form}")
    file.write_text(head(form) + text(form, 6))
    source = opened(url)
    assert found + seconds(source, 4 - len(found)) == [3, 4, 5, 6]
    source.close()


def test_a_file_that_is_no_longer_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "readings.nq"
    url = f"tail:{file}?position={tmp_path / 'at'}"
    file.write_text(text("nq", 1, 2))
    source = opened(url)
    assert settled(source) == [1, 2]
    source.commit(source.position())
    source.close()
    file.write_text(text("nq", 3))
    with caplog.at_level(logging.WARNING):
        source = opened(url)
    assert "is no longer there" in caplog.text
    assert settled(source) == [3]
    source.close()


@settings(max_examples=25, phases=[Phase.explicit, Phase.generate], deadline=None)
@given(
    steps=st.lists(st.sampled_from(["write", "half", "rotate", "restart", "read"]), max_size=12),
    form=st.sampled_from(FORMATS),
)
def test_nothing_is_lost_or_read_twice(tmp_path_factory: Any, steps: list[str], form: str) -> None:
    """Whatever a writer does, and wherever a reader is stopped after a commit: each element comes once."""
    folder = tmp_path_factory.mktemp("tail")
    file = folder / f"readings.{form}"
    file.write_text(head(form))
    url = f"tail:{file}?position={folder / 'at'}"
    source = opened(url)
    written, rotations, waiting = 0, 0, ""
    found: list[int] = []
    for step in [*steps, "write"]:
        with file.open("a") as writer:
            writer.write(waiting)
            waiting = ""
            if step in ("write", "half"):
                written += 2
                new = text(form, written - 1, written)
                writer.write(new if step == "write" else new[: len(new) // 3])
                waiting = "" if step == "write" else new[len(new) // 3 :]
        if step == "rotate":
            # Two rotations within the time for which the old file is still read would lose the file between.
            for _ in range(30):
                found += settled(source)
            rotations += 1
            file.rename(folder / f"readings.{rotations}.{form}")
            file.write_text(head(form))
        if step == "read":
            batch = source.poll()
            assert batch is not None
            found += (batch.time // 1_000_000).tolist()
        if step == "restart":
            source.commit(source.position())
            source.close()
            source = opened(url)
    found += seconds(source, written - len(found)) + settled(source)
    source.close()
    assert found == list(range(1, written + 1))


def test_in_an_engine(tmp_path: Path) -> None:
    file = tmp_path / "readings.ndjson"
    file.write_text('{"time": 1000000, "sensor": "s1", "value": 1}\n')
    engine = Engine()
    query = engine.register(f"SELECT ?v {{ STREAM <{STREAM}> [RANGE 10s] {{ ?s {V} ?v }} }}")

    def is_enough(statistics: Statistics) -> bool:
        if statistics.elements == 1:
            with file.open("a") as writer:
                writer.write('{"time": 2000000, "sensor": "s1", "value": 2}\n')
        return statistics.elements >= 2

    run_until(engine, {STREAM: f"tail:{file}"}, is_enough, maps={STREAM: MAP})
    assert [int(result.bindings["v"]) for result in query.results()] == [1, 2]
    engine.close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("tail:", "names no file; one is written like tail:readings.nq"),
        ("tail:a.log", "its ending does not tell the format; give format= one of nq, nt, ndjson, csv, tsv"),
        ("tail:a.ttl", "ttl cannot be read while it is written; give format= one of nq"),
        ("tail:a.nq?start=middle", "the option start is one of begin, end, not 'middle'"),
        ("tail:a.nq?stat=end", "there is no option 'stat'.*did you mean start"),
    ],
)
def test_what_is_wrong_is_said(url: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        source_of(url)


def test_a_wrong_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "readings.nq"
    with pytest.raises(UsageError, match="there is no file"):
        opened(f"tail:{file}")
    file.write_text(text("nq", 1))
    position = tmp_path / "at"
    position.write_text("{")
    with pytest.raises(UsageError, match="holds no position"):
        opened(f"tail:{file}?position={position}")
    position.write_text(json.dumps({"of": "tail:other.nq", "position": None}))
    with pytest.raises(UsageError, match=re.escape("holds the position of tail:other.nq: name another file")):
        opened(f"tail:{file}?position={position}")
    source = opened(f"tail:{file}?position={tmp_path / 'no' / 'at'}")
    assert settled(source) == [1]
    with pytest.raises(Exception, match=r"cannot write .*No such file"):
        source.commit(source.position())
    source.close()
