"""`cqels bench rules`: one batch, ticks and texts have as many results, denser facts keep as much, and reelay agrees."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from cqels_py.suites import rule_facts, rules
from tests.cli.conftest import Cqels

SECOND = 1_000_000


def test_suites_are_measured(cqels: Cqels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "LEAST_UPDATES", 200)
    file = tmp_path / "figures.json"
    finished = cqels("bench", "rules", "--triples", 2_000, "--json", file)
    assert finished.status == 0, finished.err
    document = json.loads(file.read_text())
    assert [each["suite"] for each in document["figures"]] == ["network", "traffic", "lubm"]
    for each in document["figures"]:
        assert each["results"] > 0
        assert min(each["from_texts"], each["from_ids"]) > 0
        assert len(each["kept"]) == 8
    assert document["reelay"]["rules"] > 0
    assert (document["reelay"]["reelay"] is None) == (find_spec("reelay") is None)
    assert "cqels-py[bench]" in finished.out or find_spec("reelay")


def test_intervals_do_not_depend_on_the_density_of_the_signals() -> None:
    (suite,) = rules.chosen("network")
    peaks = [rules._peak(suite, gap, 100_000, 1, 100) for gap in rules.GAPS]
    assert peaks[-1].facts > 20 * peaks[0].facts
    assert peaks[-1].intervals < 1.1 * peaks[0].intervals


def test_a_suite_that_there_is_not(cqels: Cqels) -> None:
    finished = cqels("bench", "rules", "--suite", "trains")
    assert finished.status == 2
    assert "network, traffic, lubm" in finished.err


def test_different_numbers_of_results_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_from_texts", lambda query, facts: (1.0, 0))
    with pytest.raises(rules.UsageError, match="results from one batch"):
        rules.measure(rules.chosen("lubm")[0], 1_000, 1, lambda text: None)


def test_a_short_stop_is_found_by_hand() -> None:
    suite = rules.chosen("traffic")[0]
    facts = rule_facts.traffic(40, SECOND, 0, np.random.default_rng(3))
    speed = {
        (vehicle, time): int(value.split('"')[1])
        for vehicle, time, value in zip(facts.subject, facts.time.tolist(), facts.object, strict=True)
    }
    expected = sum(
        now > 0
        and speed.get((vehicle, time - SECOND)) == 0
        and any(speed.get((vehicle, time - back * SECOND), 0) > 0 for back in range(2, 6))
        for (vehicle, time), now in speed.items()
    )
    assert rules._Run(suite.query, facts).take() == expected > 0
