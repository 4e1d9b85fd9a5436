"""The definitions in the folder of the service: what is read is what was written, or it is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cqels_py.checkpoints import durable_files
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.service.folder import Folder

HOT, COLD = {"query": "SELECT ?é", "keep": 5}, {"query": "SELECT ?s", "keep": None}


def _read(path: Path) -> dict[str, object]:
    return dict(Folder(path).all("queries"))


def test_a_definition_whose_file_is_damaged_is_refused(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("queries", "hot", HOT)
    path = tmp_path / "queries/hot.json"
    data = path.read_bytes()
    harmless = 0
    for place in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            # Some bits decide nothing, as in the case of a hexadecimal digit.
            assert _read(tmp_path) == {"hot": HOT}
            harmless += 1
        except StorageError as error:
            assert str(path) in error.message
    assert harmless < 5
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(StorageError, match=r"hot\.json"):
            _read(tmp_path)


def test_definitions_in_each_others_place_are_refused(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("queries", "hot", HOT)
    folder.write("queries", "cold", COLD)
    assert _read(tmp_path) == {"cold": COLD, "hot": HOT}
    (tmp_path / "queries/hot.json").rename(tmp_path / "queries/cold.json")
    with pytest.raises(StorageError, match=r"cold\.json is damaged, or another definition's"):
        _read(tmp_path)


def test_definitions_of_an_earlier_version_are_read(tmp_path: Path) -> None:
    Folder(tmp_path)
    (tmp_path / "queries/hot.json").write_text(json.dumps({"format": 1, **HOT}))
    assert _read(tmp_path) == {"hot": HOT}


def test_folders_that_are_made_are_synced_in_those_above_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = list[str]()
    sync = durable_files.sync_entries

    def told(folder: Path) -> None:
        synced.append(os.path.relpath(folder, tmp_path))
        sync(folder)

    monkeypatch.setattr(durable_files, "sync_entries", told)
    Folder(tmp_path / "above/data")
    assert synced[:2] == [".", "above"]
    assert synced[2:] == ["above/data"] * 4
    Folder(tmp_path / "above/data")
    assert len(synced) == 6
