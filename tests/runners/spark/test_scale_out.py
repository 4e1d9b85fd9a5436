"""The suite of more parts: all cases are measured, and a heavy value relieves the busiest part of triples."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bench.suites import scale_out


def test_everything_is_measured(capsys: pytest.CaptureFixture[str], tmp_path: object) -> None:
    assert scale_out.main(["--quick", "--rounds", "1", "--output", str(tmp_path)]) == 0
    assert "heavy" in capsys.readouterr().out


def test_half_of_the_triples_have_one_value() -> None:
    table = scale_out._with_half(scale_out.links(900))
    busy = pa.compute.sum(pa.compute.equal(table["subject"], scale_out.BUSY)).as_py()
    assert 380 < busy < 520
