"""The benchmark of connectors runs, against the servers themselves."""

from __future__ import annotations

import json
from pathlib import Path

from bench.suites import connectors
from tests.support.servers import needed_module, program


def test_every_case_has_figures(tmp_path: Path) -> None:
    needed_module("paho.mqtt.client", "mqtt")
    needed_module("confluent_kafka", "kafka")
    needed_module("psycopg", "postgres")
    program("mosquitto", "mosquitto", "/usr/sbin")
    program("mosquitto_pub", "mosquitto-clients")
    assert connectors.main(["--quick", "--output", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "connectors.json").read_text())
    cases = found["figures"]["cases"]
    assert len(cases) == 4
    assert all(case["per_second"][0] > 0 for case in cases)
    assert set(cases[1]["shares"]) == {"publisher", "broker", "engine"}
    assert set(cases[2]["shares"]) == {"producer and cluster", "engine"}
