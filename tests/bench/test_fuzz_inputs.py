"""Files and query texts that were changed at random: only CqelsErrors come out. The long run is bench.suites.fuzz_inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from bench.suites.fuzzed.files import COMPRESSED, PLAIN
from bench.suites.fuzzed.mutations import files, queries, sound_queries
from bench.suites.fuzzed.promises import check_file, check_query, read

FILES, QUERIES = (
    settings(max_examples=n, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    for n in (300, 70)
)


@pytest.mark.parametrize("form", sorted(PLAIN))
def test_the_files_that_are_changed_are_sound(form: str, tmp_path: Path) -> None:
    """Else hardly anything of a reader would be reached."""
    compressions = {} if form == "parquet" else COMPRESSED
    for ending, compress in {"": bytes, **{f".{name}": each for name, each in compressions.items()}}.items():
        path = tmp_path / f"input.{form}{ending}"
        path.write_bytes(compress(PLAIN[form]))
        elements, reported, error = read(path, "skip")
        assert (elements >= 5, reported, error) == (True, 0, None)


@FILES
@given(files())
def test_files_keep_the_guarantees(tmp_path_factory: pytest.TempPathFactory, case: tuple[str, bytes]) -> None:
    check_file(*case, tmp_path_factory.getbasetemp())


@QUERIES
@given(queries())
def test_texts_keep_the_guarantees(text: str) -> None:
    check_query(text)


def test_there_are_queries_of_all_dialects() -> None:
    texts = "\n".join(sound_queries())
    assert all(
        word in texts for word in ("FROM NAMED WINDOW", "FROM STREAM", "STREAM <", "CONSTRUCT", "DESCRIBE", "ASK")
    )
