"""Comments may stand between any two tokens: of SPARQL, and of what this project adds to it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from cqels_py.algebra.printer import algebra_text
from cqels_py.parser.query import parse
from cqels_py.parser.source import Source
from cqels_py.parser.tokens import tokenize

QUERIES = Path(__file__).parents[2] / "queries"
_COMMENT = ' # it\'s a { ?comment }, "with" <marks>: FILTER(?x > 1) # twice\n'
_TEXTS = {
    f"{path.parent.name}/{path.name}": path.read_text(encoding="utf-8")
    for path in sorted(QUERIES.glob("*/*.rq"))
    if path.parent.name != "srbench" or path.stem in ("08", "16")
}
_TEXTS["all kinds of tokens"] = (
    "BASE <http://ex.org/#a> PREFIX : <#> CONSTRUCT { ?s :p '#' , 'its' ; :q 1.5e3 } WHERE { STREAM :s [RANGE 5s] { "
    "?s :p / ( :q | ^ :r )* ?o ; ! ( :x | ^ :y ) [] , ( 1 -2 ) . FILTER ( ?o IN ( 1 , -2 ) && ! EXISTS { ?s :p '''a\n#b''' } ) "
    "VALUES ( ?s ?o ) { ( UNDEF '#' ) } } }"
)


@pytest.mark.parametrize("name", _TEXTS)
def test_comments_change_nothing(name: str) -> None:
    text = _TEXTS[name]
    tokens = tokenize(Source(text, None)).tokens
    pieces = [text[: tokens[0].start]]
    for before, after in pairwise(tokens):
        pieces += [before.text, _COMMENT if after.start > before.end else ""]
    commented = "".join(pieces)
    assert commented.count("# twice") > 10
    assert algebra_text(parse(commented)) == algebra_text(parse(text))
