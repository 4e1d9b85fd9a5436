"""`cqels run --runner spark` over folders: the tasks read the files, whatever their formats, and print what one machine prints."""

from __future__ import annotations

import gzip
import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as fs
import pytest

from cqels_py.algebra.nodes import Output
from cqels_py.cli.commits import Commits
from cqels_py.cli.job import Job
from cqels_py.cli.main import main
from cqels_py.errors import DataError, UsageError
from cqels_py.runners.spark import files, files_run, stage
from cqels_py.runners.spark.files_run import FOR_ALL, micro_batches
from cqels_py.spark import prepare
from tests.runners.spark import simulation
from tests.runners.spark.test_simulated import DIVIDED, EX, STATIC, STREAMS, drawn

if TYPE_CHECKING:
    from tests.oracle.naive import Element

TEXT = f"PREFIX : <{EX}> {DIVIDED['optional']}"
_GENERATED_AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
_DATE_TIME = "<http://www.w3.org/2001/XMLSchema#dateTime>"


def quads(elements: list[Element], first: int) -> bytes:
    lines = []
    for number, each in enumerate(elements, first):
        when = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=each.time)).isoformat()
        lines.append(f'<urn:g{number}> {_GENERATED_AT} "{when}"^^{_DATE_TIME} .')
        lines += [f"{' '.join(term.n3() for term in triple)} <urn:g{number}> ." for triple in each.triples]
    return "".join(f"{line}\n" for line in lines).encode()


def rows(elements: list[Element], first: int) -> bytes:
    lines = ["time\tgraph\tsubject\tpredicate\tobject"]
    for number, each in enumerate(elements, first):
        lines += ["\t".join([str(each.time), f"<urn:g{number}>", *(t.n3() for t in triple)]) for triple in each.triples]
    return "".join(f"{line}\n" for line in lines).encode()


def write(folder: Path, elements: list[Element], first: int) -> dict[str, Path]:
    """A file of each stream with these elements: of N-Quads, or a compressed table."""
    found = {}
    for number, iri in enumerate(STREAMS):
        mine = [each for each in elements if str(each.stream) == iri]
        path = folder / f"in {number}" / (f"{first:04}.nq" if number == 0 else f"{first:04}.tsv.gz")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(quads(mine, first) if number == 0 else gzip.compress(rows(mine, first)))
        found[iri] = path
    return found


def names_of(paths: dict[str, Path]) -> pa.RecordBatch:
    """The rows that a task gets of Spark."""
    found = [{"stream": STREAMS.index(stream), "graph": f"file:{path}"} for stream, path in paths.items()]
    return pa.RecordBatch.from_pylist(found, simulation.ROWS)


def in_tasks(folder: Path, elements: list[Element], **options: Any) -> Any:
    found: list[dict[str, Any]] = []
    with simulation.scratch() as place:
        job, _ = prepare(TEXT, state=place, partitions=3, changelog=True, **options)
        cluster = simulation.Cluster(job)
        last = range(0, len(elements), 20)[-1]
        for number, start in enumerate(range(0, len(elements), 20)):
            task = names_of(write(folder, elements[start : start + 20], start))
            of_files = frozenset(range(len(STREAMS)))
            routed = list(stage.route(job, [task], number, 0, of_files=of_files))
            found += cluster.evaluate(number, routed, final=start == last)
    return simulation.counted(found)


def test_elements_of_files_are_those_of_rows(tmp_path: Path) -> None:
    elements = drawn(5, 60)
    assert in_tasks(tmp_path, elements) == simulation.expected(TEXT, elements, STATIC, Output.CHANGELOG)


def test_files_of_a_store_are_copied_to_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And malformed input in them is told with their own names."""
    store = fs.SubTreeFileSystem("/", fs.LocalFileSystem())
    monkeypatch.setattr(files, "file_at", lambda uri: (store, uri.removeprefix("file:")))
    elements = drawn(6, 40)
    assert in_tasks(tmp_path, elements) == simulation.expected(TEXT, elements, STATIC, Output.CHANGELOG)
    (tmp_path / "wrong.nt").write_text("nonsense\n")
    with simulation.scratch() as place:
        job, _ = prepare(TEXT, state=place, partitions=2)
        for name, message in (("wrong.nt", f"{tmp_path}/wrong.nt"), ("missing.nq", "missing.nq cannot be read")):
            with pytest.raises(DataError, match=message) as told:
                list(stage.route(job, [names_of({STREAMS[0]: tmp_path / name})], 0, 0, of_files=frozenset([0])))
            assert "cqels-file-" not in str(told.value)
        job, _ = prepare(TEXT, state=place / "other", partitions=2, on_error="skip")
        (batch,) = stage.route(job, [names_of({STREAMS[0]: tmp_path / "wrong.nt"})], 0, 0, of_files=frozenset([0]))
        assert batch.num_rows == 2


def test_each_file_is_in_one_micro_batch() -> None:
    for seed in range(200):
        chance = random.Random(seed)
        streams = {
            stream: [(f"{stream} {n:03}", chance.choice([0, 1, 5, 900])) for n in range(chance.randrange(1, 9))]
            for stream in range(chance.randrange(1, 4))
        }
        planned = micro_batches(streams, chance.choice([1, 7, 500, 10_000]))
        for stream, named in streams.items():
            assert [name for each in planned for name in each.files.get(stream, [])] == [name for name, _ in named]
            last = max(number for number, each in enumerate(planned) if stream in each.files)
            assert [stream in each.ended for each in planned] == [number >= last for number in range(len(planned))]
        assert all(each.files for each in planned)


def test_streams_that_have_ended_are_not_waited_for(tmp_path: Path) -> None:
    elements = drawn(7, 40)
    paths = write(tmp_path, elements, 0)
    with simulation.scratch() as place:
        job, _ = prepare(TEXT, state=place, partitions=2, changelog=True, idle=FOR_ALL)
        of_files = frozenset(range(len(STREAMS)))
        for ended, some in ((frozenset[int](), False), (frozenset([1]), True)):
            task = names_of({STREAMS[0]: paths[STREAMS[0]]})
            task = task.append_column(stage.PLANNED, pa.array([7])).append_column(stage.PARTITION, pa.array([0]))
            routed = list(stage.route(job, [task], 0, 0, of_files=of_files, ended=ended))
            cluster = simulation.Cluster(
                prepare(TEXT, state=place / str(some), partitions=2, changelog=True, idle=FOR_ALL)[0]
            )
            assert bool(cluster.evaluate(0, routed, final=False)) == some


def test_folders_are_listed(tmp_path: Path) -> None:
    for name in ("b/2.nq", "a.nq.gz", "_SUCCESS", ".a.nq.crc", "b/_temporary/3.nq"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    wanted = [(f"{tmp_path}/a.nq.gz", 1), (f"{tmp_path}/b/2.nq", 1)]
    assert files.files_below(f"{tmp_path}/") == files.files_below(str(tmp_path)) == wanted
    assert files.files_below(f"{tmp_path}/b/2.nq") == wanted[1:]
    (tmp_path / "empty").mkdir()
    (tmp_path / "b" / "notes.md").write_bytes(b"x")
    for folder, message in (("empty", "no files"), ("none", "cannot list"), ("b", "the ending '.md'")):
        with pytest.raises(UsageError, match=message):
            files.files_below(str(tmp_path / folder))


QUERY = """PREFIX : <http://ex.org/> SELECT ?x ?n (COUNT(?w) AS ?c) WHERE {
    STREAM :s [RANGE 4s] { ?x :of ?n } STREAM :t [RANGE 2s] { ?x :w ?w }
} GROUP BY ?x ?n"""


@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("spark")
def test_the_command_reads_folders_in_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Two streams, of which one ends early; a blank node of a file is one node in all of its elements."""
    monkeypatch.setattr(files_run, "BYTES_A_TASK", 200)
    whole: dict[str, list[str]] = {"s": [], "t": []}
    for second in range(24):
        stream, line = ("s", "<{x}> <http://ex.org/of> _:b") if second % 2 else ("t", '<{x}> <http://ex.org/w> "1"')
        if stream == "t" and second > 12:
            continue
        x = f"http://ex.org/{second // 2 % 3}"
        whole[stream].append(f"{second * 500_000}\t" + line.format(x=x).replace(" ", "\t"))
    header, options, local = "time\tsubject\tpredicate\tobject\n", [], []
    for name, lines in whole.items():
        (tmp_path / name).mkdir()
        size = 12 if name == "s" else 3
        for n in range(0, len(lines), size):
            (tmp_path / name / f"{n:02}.tsv").write_text(header + "".join(f"{each}\n" for each in lines[n : n + size]))
        (tmp_path / f"{name}.tsv").write_text(header + "".join(f"{each}\n" for each in lines))
        options += ["--stream", f"http://ex.org/{name}={tmp_path / name}"]
        local += ["--stream", f"http://ex.org/{name}={tmp_path / name}.tsv"]
    printed, told = [], []
    for given in (local, [*options, "--runner", "spark", "--partitions", "2"]):
        assert main(["run", "-q", QUERY, *given, "--changelog", "--stats", "--format", "csv"]) == 0
        out, err = capfd.readouterr()
        # Blank nodes have no names of their own.
        printed.append(sorted(re.sub(r"_:\w+", "_:x", line) for line in out.splitlines()))
        told.append([line for line in err.splitlines() if re.match("(elements|results) ", line)])
    assert len(printed[0]) > 20
    assert any("_:x" in line for line in printed[0])
    assert len(told[0]) == 2
    assert printed[0] == printed[1]
    assert told[0] == told[1]


def test_what_the_command_refuses(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "one.tsv").write_text("time\tsubject\tpredicate\tobject\n")
    shared, own = f"http://ex.org/s={tmp_path / 'in'}", f"http://ex.org/t={tmp_path / 'one.tsv'}"
    for options, message in (
        (["--stream", shared, "--stream", own, "--runner", "spark"], "the command itself reads files"),
        (
            ["--stream", shared, "--stream", shared.replace("/s=", "/t="), "--runner", "spark", "--batch", "5"],
            "--batch",
        ),
        (["--stream", shared, "--stream", own], "is a folder, not a file"),
    ):
        assert main(["run", "-q", QUERY, *options]) == 2
        assert message in capfd.readouterr().err


@pytest.mark.parametrize(("runner", "due"), [("local", True), ("spark", False)])
def test_a_long_run_on_spark_commits_at_its_end_only(runner: str, due: bool) -> None:
    """Folders of stores have URLs, as connectors have."""
    job = Job(streams={"http://ex.org/s": "s3a://bucket/in/"}, runner=runner)
    times = iter([0.0, job.every / 1_000_000 + 1])
    assert Commits(job, times.__next__).due() is due
