"""Produces lines of a file into librdkafka's mock cluster, both in this process, for `bench.suites.connectors`.

    python -m bench.suites.kafka_producer FILE TOPIC CHUNK

The first line of standard output names the cluster's brokers. The cluster keeps 5 MiB of a partition, so that as many lines as a
CHUNK has are produced for each byte on standard input.
"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path

from confluent_kafka import Producer

PARTITIONS = 4


def main(path: str, topic: str, chunk: int) -> int:
    cluster = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none", "log_level": 0})
    servers = ",".join(f"{each.host}:{each.port}" for each in cluster.list_topics(timeout=10).brokers.values())
    producer = Producer(
        {"bootstrap.servers": servers, "linger.ms": 5, "log_level": 0, "queue.buffering.max.messages": 2 * chunk}
    )
    producer.list_topics(topic, timeout=10)  # the topic is made
    print(servers, flush=True)
    with Path(path).open("rb") as lines:
        while sys.stdin.buffer.read(1):
            for n, line in enumerate(islice(lines, chunk)):
                producer.produce(topic, line[:-1], partition=n % PARTITIONS)
            producer.flush(30)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
