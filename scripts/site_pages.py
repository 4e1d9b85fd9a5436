"""What the docs site has beyond the pages of docs/, as hooks of mkdocs: parts that are made from the code, and links.

* A page gets the commands' help, or the table of functions, where it says `<!-- commands -->` or `<!-- functions -->`.
* Plots of bench/results that a page shows are files of the site.
* Links from docs/ to other files of the repository, which are no pages, become texts; links to its Markdown files at the root
  likewise. That the files are there is tested by tests/test_readme.py.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Any, *, config: Any) -> Any:
    """The plots beside the pages."""
    from mkdocs.structure.files import File

    results = ROOT / "bench" / "results"
    for path in sorted(results.rglob("*.[ps][nv]g")):
        files.append(File.generated(config, f"plots/{path.relative_to(results).as_posix()}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """The text of a page, before it becomes HTML."""
    for mark, make in PARTS.items():
        if mark in markdown:
            markdown = markdown.replace(mark, make())
    markdown = markdown.replace("](../bench/results/", "](plots/")
    return _LINK.sub(lambda link: _kept(link, page.file.src_uri), markdown)


def _kept(link: re.Match[str], page: str) -> str:
    """A link as it is, or its text if it leads out of docs/."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link[2]))
    return link[1] if target.startswith("../") else link[0]


def commands() -> str:
    """The help of each command, in the width of a page."""
    from cqels_py.cli.main import app

    return "\n".join(f"## {name}\n\n```text\n{_help(name, command)}\n```\n" for name, command in _all("cqels", app))


def _all(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        for part in command.list_commands(click.Context(command)):
            yield from _all(f"{name} {part}", command.commands[part])


def _help(name: str, command: click.Command) -> str:
    settings: dict[str, Any] = {"show_default": True, "max_content_width": 100, "terminal_width": 100}
    return command.get_help(click.Context(command, info_name=name, **settings)).rstrip()


def functions() -> str:
    """A table of all functions by the names that queries use, with the numbers of their arguments."""
    from cqels_py.algebra.function_names import AGGREGATES
    from cqels_py.planner.expressions import ARITIES, VOLATILE

    rows = [f"| {_name(name)} | {_count(*ARITIES[name])} |" for name in sorted(ARITIES, key=_place)]
    rows += [
        f"| `{name}` | see [UUID, STRUUID, BNODE and RAND](queries.md#uuid-struuid-bnode-and-rand) |"
        for name in VOLATILE
    ]
    rows += [f"| `{name}` | aggregate |" for name in AGGREGATES]
    return "| function | arguments |\n| --- | --- |\n" + "\n".join(rows) + "\n"


def _place(name: str) -> tuple[bool, bool, str]:
    """Names in capital letters first, then operators, then casts."""
    return ":" in name, not name[0].isalpha(), name


def _name(name: str) -> str:
    shown = name.replace("http://www.w3.org/2001/XMLSchema#", "xsd:").replace("NOT-IN", "NOT IN")
    return f"<code>{shown.replace('|', '&#124;').replace('<', '&lt;').removeprefix('unary')}</code>"


def _count(least: int, most: int | None) -> str:
    if most is None:
        return f"{least} or more"
    return str(least) if least == most else f"{least} to {most}"


PARTS: dict[str, Callable[[], str]] = {"<!-- commands -->": commands, "<!-- functions -->": functions}
