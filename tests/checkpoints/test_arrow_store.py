"""States in S3, as moto's server plays it, behind a proxy that loses, delays and repeats requests."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.fs as fs
import pytest

from cqels_py.checkpoints import store
from cqels_py.checkpoints.arrow_store import ArrowStore
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.checkpoints.locations import Location, location_of
from cqels_py.spark import statistics
from tests.checkpoints.test_store import BATCHES, STAGED, begin, run, wanted
from tests.runners.spark.simulation import counted
from tests.support import lossy_proxy
from tests.support.lossy_proxy import LossyProxy
from tests.support.servers import needed_module

BUCKET = "states"


@pytest.fixture(scope="module")
def s3() -> Iterator[int]:
    """The port of a server with a bucket."""
    server = needed_module("moto.server", "dev").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    port = server.get_host_and_port()[1]
    made = http.client.HTTPConnection("127.0.0.1", port)
    made.request("PUT", f"/{BUCKET}")
    assert made.getresponse().status == 200
    yield port
    server.stop()


@pytest.fixture
def proxy(s3: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[LossyProxy]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with lossy_proxy.running(LossyProxy(s3)) as proxy:
        yield proxy


def address(proxy: LossyProxy, folder: str) -> str:
    return f"s3a://{BUCKET}/{folder}?endpoint_override={proxy.address}&scheme=http&region=us-east-1"


def test_objects(proxy: LossyProxy) -> None:
    objects = location_of(address(proxy, "objects")).below("stage1", "0").open()
    assert objects.names() == []
    objects.put("b", b"two")
    objects.put("a", b"")
    objects.put("b", b"three")
    assert objects.names() == ["a", "b"]
    assert (objects.get("a"), objects.get("b")) == (b"", b"three")
    objects.delete("a")
    objects.delete("a")
    assert objects.names() == ["b"]
    with pytest.raises(StorageError, match=rf"cannot read the state s3a://{BUCKET}/objects/stage1/0/c: "):
        objects.get("c")


@pytest.mark.parametrize("folder", ["run#1", "run#1/", ""])
def test_each_part_has_objects_of_its_own_whatever_the_folder_is_called(proxy: LossyProxy, folder: str) -> None:
    state = location_of(address(proxy, folder))
    objects = state.open()
    objects.put("q", b"query")
    for part in ("0", "1"):
        state.below(part).open().put("a", part.encode())
    for part in ("0", "1"):
        assert state.below(part).open().get("a") == part.encode()
    assert (objects.names(), objects.get("q")) == (["q"], b"query")
    objects.delete("q")
    if folder:
        assert location_of(address(proxy, "run")).below("0").open().names() == []


def test_an_upload_that_fails_in_the_middle_leaves_no_object(proxy: LossyProxy) -> None:
    """It has several parts, and the second one is refused."""
    objects = location_of(address(proxy, "uploads")).open()
    proxy.refused = lambda method, path: method == "PUT" and "partNumber=2" in path
    with pytest.raises(StorageError, match="cannot write the state"):
        objects.put("large", bytes(25 << 20))
    assert proxy.happened.total() > 1, "its first part has arrived"
    assert objects.names() == []


class Interrupted(BaseException):
    pass


def test_an_exception_while_an_upload_is_open_leaves_no_object(
    proxy: LossyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = location_of(address(proxy, "interrupted")).open()

    class System:
        """Raises after half of the data has been written."""

        def open_output_stream(self, path: str, **options: Any) -> Any:
            return Stream(inner.open_output_stream(path, **options))

        def __getattr__(self, name: str) -> Any:
            return getattr(inner, name)

    class Stream:
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        def __enter__(self) -> Stream:
            return self

        def __exit__(self, *arguments: Any) -> None:
            self._stream.close()

        def write(self, data: bytes) -> None:
            self._stream.write(data[: len(data) // 2])
            raise Interrupted

    assert isinstance(objects, ArrowStore)
    inner = objects._system
    monkeypatch.setattr(objects, "_system", System())
    with pytest.raises(Interrupted):
        objects.put("half", b"0123456789")
    assert objects.names() == []


def test_a_bucket_that_is_missing(proxy: LossyProxy) -> None:
    text = address(proxy, "x").replace(BUCKET, "nowhere")
    with pytest.raises(StorageError, match=r"cannot (write|list) the state s3a://nowhere/x"):
        begin(text)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(3))
def test_a_query_in_an_object_store_whose_requests_are_lost_delayed_and_repeated(
    proxy: LossyProxy, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_outweighs", lambda inputs, snapshot: inputs > 4_000)
    state = address(proxy, f"lossy{seed}")
    proxy.chance.seed(seed)
    cluster = begin(state, 2, STAGED)  # type: ignore[arg-type]
    proxy.faults = 0.15
    rows: list[dict[str, Any]] = []
    for batch in range(BATCHES):
        while True:
            try:
                rows += run(cluster, batch, batch + 1)
            except StorageError:
                # As Spark does.
                continue
            break
    proxy.faults = 0
    assert counted(rows) == wanted(STAGED)
    assert all(proxy.happened[each] for each in (lossy_proxy.LOST, lossy_proxy.UNANSWERED, lossy_proxy.REPEATED))
    names = Location(state).below("0").open().names()
    assert any(name.endswith(".snapshot") for name in names)
    assert statistics(state).elements > 0


def test_a_query_goes_on_in_an_object_store(proxy: LossyProxy) -> None:
    state = address(proxy, "on")
    rows = run(begin(state), 0, 2)  # type: ignore[arg-type]
    assert counted(rows + run(begin(state), 2)) == wanted()  # type: ignore[arg-type]


def test_files_that_others_see_while_they_are_written_are_renamed(tmp_path: Path) -> None:
    objects = ArrowStore(fs.LocalFileSystem(), str(tmp_path / "a" / "0"), "hdfs://host/a/0", renames=True)
    objects.put("one", b"1")
    (tmp_path / "a" / "0" / "two.0123.aside").write_bytes(b"half")
    assert objects.names() == ["one"]
    assert objects.get("one") == b"1"


def test_a_file_uri_is_a_folder(tmp_path: Path) -> None:
    assert location_of(f"file://{tmp_path}/a%20b") == Location(f"{tmp_path}/a b")
    assert location_of(f"file://{tmp_path}/a#1") == Location(f"{tmp_path}/a#1")


@pytest.mark.parametrize(
    ("uri", "below"),
    [
        ("s3a://bucket/state?region=x", "s3a://bucket/state/stage1/0?region=x"),
        ("gs://bucket", "gs://bucket/stage1/0"),
        ("abfss://box@account.dfs.core.windows.net/a/", "abfss://box@account.dfs.core.windows.net/a/stage1/0"),
        ("hdfs://host:9000/user/me/state", "hdfs://host:9000/user/me/state/stage1/0"),
    ],
)
def test_folders_below(uri: str, below: str) -> None:
    assert location_of(uri).below("stage1", "0").text == below
