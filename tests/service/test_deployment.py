"""The files in deploy/ fit the service."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cqels_py.service.allowed import Allowed
from tests.service.support import READINGS, register, served
from tests.support.servers import wait_until

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_a_container_is_not_restarted_while_a_source_is_away(tmp_path: Path) -> None:
    pytest.importorskip("paho.mqtt.client")
    asked = re.search(r"^HEALTHCHECK .*localhost:8737(/\w+)", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    assert asked is not None
    with served(tmp_path, allowed=Allowed(urls=("mqtt://127.0.0.1:1",))) as client:
        away = {"iri": READINGS, "source": "mqtt://127.0.0.1:1/readings"}
        assert client.put("/streams/readings", json=away).status_code == 201
        register(client)
        wait_until(lambda: client.get("/healthz").status_code == 503, "the source is away")
        assert client.get(asked[1]).status_code == 200
