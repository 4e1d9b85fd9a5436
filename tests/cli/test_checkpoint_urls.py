"""`cqels run --checkpoint` with URLs: killed at any moment and started again, a table has each result once."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from tests.cli.test_checkpoint import LIVE, quads
from tests.support.amount import long
from tests.support.servers import MqttBroker, PostgresServer, wait_until

STREAM = "http://ex.org/s"


@pytest.fixture
def url(postgresql: PostgresServer) -> str:
    return postgresql.emptied()


def command(source: object, output: str, checkpoint: Path, *more: str) -> list[str]:
    options = ["--every", "0.1s", "-o", output, "--checkpoint", str(checkpoint), *more]
    return [sys.executable, "-m", "cqels_py", "run", "-q", LIVE, f"--stream={STREAM}={source}", *options]


@pytest.mark.parametrize(("mode", "limit"), [("append", ()), ("upsert", ()), ("append", ("--limit", "1800"))])
def test_a_table_has_each_result_once_wherever_the_run_is_killed(
    mode: str, limit: tuple[str, ...], postgresql: PostgresServer, url: str, tmp_path: Path
) -> None:
    """The reader of a file is killed at random moments; a table of another run, which was never killed, is the same."""
    random = Random(7)
    path = tmp_path / "s.nq"
    path.write_bytes(quads(0, 3500))
    postgresql.execute(
        f"CREATE TABLE a ({'_number bigint, _sign int, ' if mode == 'append' else ''}s text, n int, m int)"
    )
    postgresql.execute("CREATE TABLE b (LIKE a)")
    whole = command(path, f"{url}#a?mode={mode}", tmp_path / "whole", "--changelog", "--batch", "10", *limit)
    subprocess.run(whole, check=True, capture_output=True)
    killed = command(path, f"{url}#b?mode={mode}", tmp_path / "killed", "--changelog", "--batch", "10", *limit)
    kills = 0
    for _ in range(30):
        before = written(postgresql)
        process = subprocess.Popen(killed, stderr=subprocess.PIPE)
        while process.poll() is None and written(postgresql) <= before:
            time.sleep(0.01)
        time.sleep(random.uniform(0, 0.1))
        process.kill()
        _, said = process.communicate()
        if process.returncode == 0:
            break
        assert process.returncode == -9, said
        kills += 1
        if kills == 2:
            subprocess.run(killed, check=True, capture_output=True)
            break
    assert kills > 1
    columns = "*" if mode == "upsert" else "_number, _sign, s, n, m"
    assert postgresql.execute(f"SELECT {columns} FROM b ORDER BY 1, 2") == postgresql.execute(
        f"SELECT {columns} FROM a ORDER BY 1, 2"
    )
    if limit:
        assert postgresql.execute("SELECT COUNT(*) FROM b") == [(int(limit[1]),)]
    again = subprocess.run(killed, check=True, capture_output=True)
    assert b"has ended, and its results are in postgresql://" in again.stderr


def written(postgresql: PostgresServer) -> int:
    """The number of the last result that the table b has."""
    if not postgresql.execute("SELECT to_regclass('_cqels_progress')")[0][0]:
        return 0
    found = postgresql.execute("SELECT number FROM _cqels_progress WHERE sink = 'b'")
    return int(found[0][0]) if found else 0


DOCS = Path(__file__).parent.parent.parent / "docs/connectors.md"
RANGE = 60


def recipe(broker: MqttBroker, url: str) -> str:
    """The commands of the recipe in the docs, with the servers of this test and a shorter window."""
    text = DOCS.read_text().partition("## From MQTT to PostgreSQL, with an alert on silence")[2]
    commands = text.partition("```sh\n")[2].partition("```")[0]
    assert len(commands.splitlines()) <= 20
    for here, there in (
        ("mqtt://localhost", broker.url),
        ("postgresql://localhost/weather", url),
        ("RANGE 5m", f"RANGE {RANGE}s"),
        ("cqels run", f"exec {sys.executable} -m cqels_py run"),
    ):
        assert here in commands
        commands = commands.replace(here, there)
    return commands


@long
def test_the_recipe_is_killed_and_goes_on(
    broker: MqttBroker, postgresql: PostgresServer, url: str, tmp_path: Path
) -> None:
    commands = recipe(broker, url)

    def started() -> subprocess.Popen[bytes]:
        return subprocess.Popen(["sh", "-c", commands], cwd=tmp_path, stderr=subprocess.DEVNULL)

    def publish(*readings: tuple[str, float]) -> None:
        now = datetime.now(UTC).isoformat()
        bodies = [
            json.dumps({"time": now, "sensor": f"s-{room}", "room": room, "temperature": value})
            for room, value in readings
        ]
        broker.publish("readings/x", *bodies)

    def is_table(*expected: tuple[str, float | None, str]) -> bool:
        return rooms(postgresql) == {f"http://ex.org/{room}": (hottest, status) for room, hottest, status in expected}

    process = started()
    wait_until(lambda: is_table(("attic", None, "silent"), ("cellar", None, "silent")), "the first answer", 120)
    publish(("attic", 99.5), ("cellar", 12), ("attic", 3))
    wait_until(lambda: is_table(("attic", 99.5, "ok"), ("cellar", 12, "ok")), "the readings", 60)
    process.kill()
    process.wait()
    publish(("cellar", 30))
    process = started()
    # Of before: the reading of the attic. Of meanwhile: that of the cellar.
    publish(("attic", 50))
    wait_until(lambda: is_table(("attic", 99.5, "ok"), ("cellar", 30, "ok")), "the readings of meanwhile", 60)
    publish(*[("cellar", number) for number in range(31, 91)])
    wait_until(lambda: rooms(postgresql)["http://ex.org/cellar"][0] in range(40, 91), "more readings", 60)
    process.kill()
    process.wait()
    process = started()
    wait_until(lambda: rooms(postgresql)["http://ex.org/cellar"] == (90, "ok"), "all readings", 60)
    wait_until(lambda: is_table(("attic", None, "silent"), ("cellar", None, "silent")), "silence", 2 * RANGE)
    process.terminate()
    assert process.wait() == 143


def rooms(postgresql: PostgresServer) -> dict[str, tuple[float | None, str]]:
    if not postgresql.execute("SELECT to_regclass('rooms')")[0][0]:
        return {}
    found = postgresql.execute("SELECT room, hottest::float, status FROM rooms")
    return {room: (hottest, status) for room, hottest, status in found}
