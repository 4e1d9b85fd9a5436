"""The content of a checkpoint's folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from cqels_py.checkpoints import log
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.checkpoints.packed import count_of
from cqels_py.checkpoints.savepoints import explained, numbers_of, parts_of
from cqels_py.checkpoints.state_file import from_bytes
from cqels_py.engine.durable.records import HEAD, Kind, elements_behind, head_of
from cqels_py.engine.durable.saved_state import ENGINE, HEADER, check_kind


@dataclass(frozen=True, slots=True)
class Summary:
    """The content of a checkpoint. `queries`: by name, the number of results before the last snapshot.

    `snapshots`, `logs`: the bytes of each file; a snapshot that is damaged has a negative number.
    """

    elements: int
    records: int
    queries: Mapping[str, int]
    snapshots: Mapping[str, int]
    logs: Mapping[str, int]


def summary(folder: Path) -> Summary:
    """The content of a checkpoint that may be in use. UsageError for another folder; StorageError if it is damaged."""
    snapshots: dict[str, int] = {}
    for number in numbers_of(folder):
        path = folder / f"{number:012}.snapshot"
        data = path.read_bytes()
        try:
            from_bytes(data)
            snapshots[path.name] = len(data)
        except StorageError:
            snapshots[path.name] = -len(data)
    with explained(folder):
        parts = parts_of(folder)
    state = parts.state
    logs = {log.name_of(each): (folder / log.name_of(each)).stat().st_size for each in log.numbers(folder)}
    check_kind(folder, state)
    records = [record for each in parts.logs for record in each.records]
    header = json.loads(str(state[HEADER]["json"]))
    queries = {each["key"]: count for each, count in zip(header["queries"], header["counts"], strict=True)}
    joining = ""
    elements = cast(int, state[f"{ENGINE}counters"]["elements"])
    for record in records:
        content = memoryview(record.content)[HEAD.size :]
        if record.kind in (Kind.ELEMENTS, Kind.READ):
            elements += count_of(content)
        elif record.kind in (Kind.ONCE, Kind.FED):
            elements += count_of(elements_behind(content))
        elif record.kind == Kind.REGISTER:
            queries[head_of(content)["given"]["key"]] = 0
        elif record.kind in (Kind.JOIN, Kind.JOINING):
            joining = head_of(content)["given"]["key"]
        elif record.kind == Kind.JOINED:
            queries[joining] = 0
        elif record.kind == Kind.UNREGISTER:
            queries.pop(bytes(content).decode(), None)
        elif record.kind == Kind.FAILED:
            queries.pop(json.loads(bytes(content))[0], None)
    return Summary(elements, len(records), queries, snapshots, logs)
