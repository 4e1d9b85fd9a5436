"""The docs site is built without a warning: links, anchors, the navigation and the docstrings of the public interface."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import cqels_py

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.skipif(find_spec("mkdocs") is None, reason="needs mkdocs: pip install -e '.[docs]'")


def test_the_pictures_are_those_that_the_engine_gives(tmp_path: Path) -> None:
    finished = subprocess.run(
        [sys.executable, ROOT / "scripts" / "draw_pictures.py", tmp_path],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    drawn = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert drawn == {name: (ROOT / "docs" / "pictures" / name).read_text(encoding="utf-8") for name in drawn}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    finished = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout + finished.stderr == ""
    return folder


def test_every_public_name_is_in_the_interface(site: Path) -> None:
    described = set(re.findall(r'id="([\w.]+)"', (site / "interface.html").read_text(encoding="utf-8")))
    public = [getattr(cqels_py, name) for name in cqels_py.__all__]
    assert [each for each in public if f"{each.__module__}.{each.__qualname__}" not in described] == []


def test_every_command_is_on_the_page_of_commands(site: Path) -> None:
    from cqels_py.cli.main import app

    page = (site / "command-line.html").read_text(encoding="utf-8")
    assert [name for name in app.commands if f'<h2 id="cqels-{name}">' not in page] == []


def test_no_page_has_a_mark_that_was_not_replaced(site: Path) -> None:
    marked = [
        page.name for page in site.rglob("*.html") if re.search(r"<!-- \w+ -->", page.read_text(encoding="utf-8"))
    ]
    assert marked == []


def test_the_search_finds_words_of_the_code(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    assert all(word in index for word in ("subscribe_batches", "ENCODE_FOR_URI", "--max-state", "watermark"))
