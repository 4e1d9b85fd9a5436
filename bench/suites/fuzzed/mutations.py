"""Random mutations of bytes and of query texts, generated so that hypothesis can shrink a failing case."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from bench.suites.fuzzed.files import COMPRESSED, PLAIN

_ROOT = Path(__file__).parents[3]
_TOKEN = re.compile(r'\s+|<[^<>\s]*>|"[^"\n]*"|[?$]\w+|\w+|.', re.DOTALL)
_PIECES = [
    b'"', b'""', b"'''", b"\n", b"\r", b"\r\n", b",", b"\t", b"<", b">", b"\\", b"\\u12", b"\\uD800", b"\x00", b"\xff",
    b"\xef\xbb\xbf", b"[", b"]", b"{", b"}", b"(", b")", b".", b";", b"#", b"_:", b"^^", b"@", b"&e;", b"<!--", b"]]>",
    b"-", b"9" * 30, b"1e999999999", b"2024-99-99", b"24:00:00", b"\xe2\x80\xa8", "٣".encode(), b"null", b"@context", b"x" * 300,
]  # fmt: skip
_ENCODINGS = ("utf-8-sig", "utf-16", "utf-16-le", "latin-1")
_WORDS = [
    '"""', "'''", "\\u", "\\u00e9", "\\U0010FFFF", "\\uD800", "\x00", "\ufeff", "١٢", "9" * 5000, "1e400", "1.5e-9999", "?", "_:",
    "@en", "[]", "()", "{}", "*", "||", "!", "^", "|", "(?x AS ?y)", "GROUP BY", "ORDER BY", "HAVING(", "VALUES", "UNDEF",
    "EXISTS {", "MINUS {", "GRAPH", "PARTITION BY", "STEP", "START", "COUNT(", "DISTINCT", "SEPARATOR", "AS", "LIMIT", "OFFSET",
    "CONSTRUCT", "DESCRIBE", "ASK", "REGISTER", "BNODE()", "RAND()", "IN (", "NOT", "BASE <x>", "PREFIX", "<>", "<http://[>",
    "<a b>", "\udcff", "\u2028", "^^",
]  # fmt: skip
_QUERIES = ("tests/golden/parser/*.rq", "tests/golden/rewrites/*.rq", "queries/**/*.rq")


@dataclass(frozen=True, slots=True)
class Edit:
    """Position (0 to 1), amount, and kind: "flip" a bit, "cut" some, "double" some, "put" a piece, "end" there, "move" some."""

    kind: str
    at: float
    length: int
    piece: int

    def of(self, data: bytes) -> bytes:
        start = int(self.at * len(data))
        end = min(len(data), start + self.length)
        match self.kind:
            case "flip" if start < len(data):
                return data[:start] + bytes([data[start] ^ (1 << self.piece % 8)]) + data[start + 1 :]
            case "cut":
                return data[:start] + data[end:]
            case "double":
                return data[:end] + data[start:end] + data[end:]
            case "put":
                return data[:start] + _PIECES[self.piece % len(_PIECES)] + data[start:]
            case "end":
                return data[:start]
            case "move":
                return data[:start] + data[end:] + data[start:end]
        return data


_KINDS = ("flip", "cut", "double", "put", "end", "move")


def edits(least: int) -> st.SearchStrategy[list[Edit]]:
    each = st.builds(
        Edit, st.sampled_from(_KINDS), st.floats(0, 1), st.sampled_from([1, 2, 5, 20, 100]), st.integers(0, 1000)
    )
    return st.lists(each, min_size=least, max_size=6)


def _edited(data: bytes, changes: Sequence[Edit]) -> bytes:
    for change in changes:
        data = change.of(data)
    return data


@st.composite
def files(draw: st.DrawFn) -> tuple[str, bytes]:
    """A file's suffix and its bytes: a valid file, mutated before or after it is compressed, or in another encoding."""
    form = draw(st.sampled_from(sorted(PLAIN)))
    compression = draw(st.sampled_from([None, None, None, None, *sorted(COMPRESSED)]))
    data = _edited(PLAIN[form], draw(edits(0 if compression else 1)))
    if form != "parquet" and draw(st.integers(0, 19)) == 0:
        data = data.decode("utf-8", "replace").encode(draw(st.sampled_from(_ENCODINGS)), "replace")
    if compression is None:
        return form, data
    return f"{form}.{compression}", _edited(COMPRESSED[compression](data), draw(edits(0)))


@cache
def sound_queries() -> list[str]:
    """Valid queries in all dialects."""
    return [path.read_text(encoding="utf-8") for pattern in _QUERIES for path in sorted(_ROOT.glob(pattern))]


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A query text, mutated by tokens or by characters."""
    texts = sound_queries()
    tokens = _TOKEN.findall(draw(st.sampled_from(texts)))
    if draw(st.booleans()):
        tokens = [each for token in tokens for each in token]
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(tokens)))
        end = start + draw(st.sampled_from([0, 1, 1, 3, 10]))
        other = _TOKEN.findall(draw(st.sampled_from(texts)))
        first = draw(st.integers(0, len(other)))
        choices = (
            [],
            [f" {draw(st.sampled_from(_WORDS))} "],
            tokens[start:end] * 2,
            other[first : first + 8],
            [draw(st.characters())],
        )
        tokens[start:end] = draw(st.sampled_from(choices))
    return "".join(tokens)
