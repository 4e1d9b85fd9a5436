"""The programs of examples/ run and do as they say. That of Spark is in tests/runners/spark/test_example.py."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers import MqttBroker, needed_module, wait_until

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


def printed(name: str, *arguments: str) -> list[str]:
    finished = subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments], capture_output=True, text=True, check=False
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.splitlines()


def test_the_readme_names_each_of_them() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    names = [path.name for path in EXAMPLES.iterdir() if not path.name.startswith((".", "__"))]
    assert [name for name in names if f"(examples/{name})" not in readme] == []


def test_asyncio() -> None:
    expected = [f"{second} {said} http://ex.org/s1" for second, said in [(1, "hot"), (3, "over"), (4, "hot")]]
    assert printed("asyncio_alerts.py") == expected


def test_data_frames() -> None:
    pytest.importorskip("polars")
    lines = printed("data_frame.py", "200")
    # The last hour of 200 minutes: those of 140 to 199, in turn by airline.
    expected = {
        name: [row * 7 % 31 for row in range(140, 200) if row % 3 == at] for at, name in enumerate(("AA", "B6", "DL"))
    }
    assert lines[1:] == [f"http://ex.org/{name} {round(sum(all_) / 20, 2)} 20" for name, all_ in expected.items()]
    assert lines[0] == "200 results"


def outputs(cell: Any) -> str:
    found = [each.get("data", {}).get("text/html", "") for each in cell.outputs]
    return "".join("".join(html) for html in found)


def test_the_notebook() -> None:
    pytest.importorskip("polars")
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.read(EXAMPLES / "notebook.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "clear its outputs"
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    _, analysis, shown, _, frame, query = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert "bounded by what comes in 10s" in outputs(analysis)
    # The table stands where show() was called, and has changed since.
    last = [(second % 4 < 2, 20 + second * 7 % 13) for second in range(10, 20)]
    for room, is_attic in (("attic", True), ("cellar", False)):
        values = [value for in_attic, value in last if in_attic == is_attic]
        assert f"<td>{room}</td><td>{max(values)}</td><td>{len(values)}</td>" in outputs(shown)
    assert "&quot;attic&quot;" in outputs(frame)
    assert "<summary>plan</summary>" in outputs(query)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[MqttBroker]:
    needed_module("paho.mqtt.client", "mqtt")
    (tmp_path / "broker").mkdir()
    started = MqttBroker(tmp_path / "broker")
    yield started
    started.stop()


def test_the_mqtt_service_goes_on_after_a_kill(broker: MqttBroker, tmp_path: Path) -> None:
    program = EXAMPLES / "mqtt_service.py"
    assert len(program.read_text(encoding="utf-8").splitlines()) <= 30
    alerts = broker.received("alerts/#")

    def hottest() -> list[str]:
        return [
            json.loads(body)["bindings"]["hottest"]["value"]
            for topic, body in alerts.messages
            if topic == "alerts/attic"
        ]

    def publish(*temperatures: int) -> None:
        bodies = [json.dumps({"sensor": "s1", "room": "attic", "temperature": each}) for each in temperatures]
        broker.publish("readings/s1", *bodies)

    def run_until(told: str, *temperatures: int) -> None:
        """Start the service, publish until it tells of them (a session that does not exist yet keeps no message), and kill it."""
        process = subprocess.Popen([sys.executable, program, broker.url, tmp_path / "state"], stderr=subprocess.DEVNULL)
        try:
            for _ in range(120):
                publish(*temperatures)
                with suppress(pytest.fail.Exception):
                    wait_until(lambda: told in hottest(), "an alert", 0.5)
                    return
            pytest.fail(f"no alert of {told} degrees")
        finally:
            process.kill()
            process.wait()

    try:
        run_until("35", 25, 35)
        run_until("36", 31, 36)
        # After the kill the window still had 35 degrees: 31 was no news.
        assert "31" not in hottest()
    finally:
        alerts.close()
