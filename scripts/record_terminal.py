"""Records a run of the demo as a picture of a terminal:

    python scripts/record_terminal.py [FILE]

The default is docs/pictures/terminal.svg.

The picture moves: each frame is the table after some more departures, as `cqels demo flights` shows it on a terminal.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
COMMAND = "cqels demo flights --days 1 --format table"
COLUMNS, SECONDS = 60, 1.2
LIMITS = (1, 2, 3, 5, 8, 12, 17, 23)
_REMOTE_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def frame(limit: int, rows: int) -> str:
    """The inside of the picture after so many results, filled up to `rows` lines."""
    shown = subprocess.run(
        [sys.executable, "-m", "cqels_py", *COMMAND.split()[1:], "--limit", str(limit)],
        env={"PATH": "", "COLUMNS": str(COLUMNS), "PYTHONIOENCODING": "utf-8"}, cwd=ROOT,
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    lines = [f"$ {COMMAND}", *shown.splitlines()]
    return "\n".join([*lines, *[""] * (rows - len(lines))])


def drawn(text: str, name: str) -> str:
    """A picture by rich, without the fonts of another server."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text(text))
    return _REMOTE_FONT.sub("", console.export_svg(title="cqels", unique_id=name))


def main(path: Path) -> None:
    """Frames one above the other, of which one is shown at a time; the last one stays twice as long."""
    texts = [frame(limit, 0) for limit in LIMITS]
    rows = max(text.count("\n") + 1 for text in texts)
    texts = [text + "\n" * (rows - text.count("\n") - 1) for text in texts]
    pictures = [drawn(text, f"frame{number}") for number, text in enumerate(texts)]
    width, height = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', pictures[0])[0]
    count = len(pictures) + 1
    share = 100 / count
    style = "".join(
        f"#f{number} {{ animation: k{number} {count * SECONDS:g}s step-end infinite; }}\n"
        f"@keyframes k{number} {{ 0% {{ visibility: {'visible' if number == 0 else 'hidden'}; }} "
        + (f"{number * share:.2f}% {{ visibility: visible; }} " if number else "")
        + ("" if number == len(pictures) - 1 else f"{(number + 1) * share:.2f}% {{ visibility: hidden; }} ")
        + "}\n"
        for number in range(len(pictures))
    )
    body = "".join(f'<g id="f{number}">{picture}</g>\n' for number, picture in enumerate(pictures))
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{float(width):.0f}" role="img" '
        f'aria-label="The mean delay of each airline, as a table that changes">\n<style>\n{style}</style>\n{body}</svg>\n',
        encoding="utf-8",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures" / "terminal.svg")
