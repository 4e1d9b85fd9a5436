"""How much is tested. With CQELS_TEST_ALL=1, as in continuous integration, everything. Without it a slice: fewer generated inputs,
of tests with many seeds some, and of sweeps over all places of a failure every few (`tests.support.amount`). HYPOTHESIS_PROFILE=soak
is for long hunts, `few` for generated queries whose kernels run as plain Python.

In every test arrays are checked that kernels must not touch any more, and that the kernels that the package calls are in the
manifest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from cqels_py.dataflow.work import StepTimer
from cqels_py.kernels.compiler.manifest import RECORD_AGAIN, KernelCall
from tests.support.amount import ALL, has_seed_of_slice
from tests.support.kernels_beyond_manifest import calls_beyond_manifest
from tests.support.servers import MqttBroker, PostgresServer, needed_module

os.environ["CQELS_CHECK_MEMORY"] = "1"

_SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

settings.register_profile("all", max_examples=40, deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.register_profile("soak", max_examples=5000, deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.register_profile("few", max_examples=12, deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "all" if ALL else "few"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the seeds beyond the slice, unless tests were named one by one."""
    if ALL or any("::" in name for name in config.args):
        return
    left = [item for item in items if not has_seed_of_slice(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if has_seed_of_slice(item)]


@pytest.fixture(scope="session")
def beyond_manifest() -> Iterator[list[KernelCall]]:
    with calls_beyond_manifest() as calls:
        yield calls


@pytest.fixture(autouse=True)
def no_kernel_is_beyond_the_manifest(beyond_manifest: list[KernelCall]) -> Iterator[None]:
    """Such a kernel would be compiled in the middle of a run, also on a machine where all others have been compiled."""
    yield
    lines = "\n".join(map(str, beyond_manifest))
    beyond_manifest.clear()
    assert not lines, f"{lines}\n{RECORD_AGAIN} TEST"


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first steps of all are measured, by calls: without that programs do them, also those of batches."""
    monkeypatch.setattr(StepTimer, "begin", lambda timer, elements: None)


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """One server for all tests of a process: each makes the tables that it needs anew."""
    needed_module("psycopg", "postgres")
    running = PostgresServer(tmp_path_factory.mktemp("postgresql"))
    yield running
    running.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MqttBroker]:
    """One broker for all tests of a process: each has topics of its own."""
    needed_module("paho.mqtt.client", "mqtt")
    running = MqttBroker(tmp_path_factory.mktemp("mosquitto"))
    yield running
    running.stop()
