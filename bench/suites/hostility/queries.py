"""Queries that grow: joins, static data, paths, lists, regular expressions, texts."""

from __future__ import annotations

from bench.suites.hostility.limits import limit
from bench.suites.hostility.running import EX, Answers, cqels_run, integer, iri, write_lines
from cqels_py.engine.engine import Engine
from cqels_py.errors import CqelsError

_SENSORS = 4
_SECONDS = 800


@limit(megabytes=400, seconds=20)
def join_of_many_inputs() -> str:
    """a join of four observations of three patterns each over two windows and static data, ten results asked for."""
    sources = [write_lines(f"{name}.nq", _observations(name)) for name in ("north", "south")]
    kinds = write_lines(
        "kinds.nt", (f"{iri(f'property{i}')} {iri('kind')} {iri(f'kind{i}')} ." for i in range(_SENSORS))
    )
    patterns = " ".join(
        f"?o{i} :property ?p{i} ; :value ?v{i} ; :by :{'north' if i % 2 else 'south'}{i} . ?p{i} :kind :kind{i} ."
        for i in range(_SENSORS)
    )
    selected = " ".join(f"?o{i} ?v{i}" for i in range(_SENSORS))
    windows = " ".join(f"FROM STREAM :{name} [RANGE 7s STEP 1s]" for name in ("north", "south"))
    text = f"PREFIX : <{EX}> REGISTER QUERY many AS SELECT {selected} {windows} WHERE {{ {patterns} }}"
    streams = [f"--stream={EX}{name}={path}" for name, path in zip(("north", "south"), sources, strict=True)]
    done = cqels_run("-q", text, *streams, f"--static={kinds}", "--format=json", "--limit=10")
    assert (done.returncode, done.stdout.count("\n")) == (0, 10), done.stderr
    return "10 results"


def _observations(name: str) -> list[str]:
    """An element a second, with an observation of each of the sensors."""
    lines: list[str] = []
    for second in range(_SECONDS):
        graph = iri(f"{name}/{second}")
        at = f'"2024-05-01T12:{second // 60:02}:{second % 60:02}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
        lines.append(f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> {at} .")
        for i in range(_SENSORS):
            observation = iri(f"{name}/{second}/{i}")
            lines.append(f"{observation} {iri('property')} {iri(f'property{i}')} {graph} .")
            lines.append(f"{observation} {iri('value')} {integer(second * i % 50)} {graph} .")
            lines.append(f"{observation} {iri('by')} {iri(f'{name}{i}')} {graph} .")
    return lines


@limit(megabytes=300, seconds=5)
def static_patterns_apart() -> str:
    """static patterns without a common variable over 8,000 triples, 16,000,000 pairs."""
    static = [(iri(f"a{i}"), iri(name), iri(f"{name}{i}")) for i in range(4000) for name in ("p", "q")]
    answers = Answers("?s :v ?a ; :w ?c", "?a :p ?b . ?c :q ?d", static=[static])
    answers.push(("v", iri("a1")), ("w", iri("a2")))
    assert answers.count == 1
    return "1 result"


def _path(steps: int) -> str:
    path = "/".join(f":p{i % 7}" for i in range(steps))
    try:
        answers = Answers(f"?s {path} ?o")
    except CqelsError as error:
        assert "path" in str(error) or "nested" in str(error), error
        return f"refused: {str(error)[:60]}"
    assert answers.count == 0
    return "registered"


@limit(megabytes=400, seconds=3)
def path_of_200_steps() -> str:
    """a property path of 200 steps."""
    return _path(200)


@limit(megabytes=600, seconds=15)
def path_of_1000_steps() -> str:
    """a property path of 1,000 steps."""
    return _path(1000)


@limit(megabytes=600, seconds=10)
def nested_lists() -> str:
    """a pattern of 100 lists, each within the one before."""
    return Answers(f"?s :v {'( ' * 100}1{' )' * 100}").state


@limit(megabytes=500, seconds=10)
def brackets() -> str:
    """an expression within 5,000 pairs of parentheses."""
    try:
        Answers("?s :v ?x", f"FILTER({'(' * 5000}?x{')' * 5000})")
    except CqelsError as error:
        return f"refused: {str(error)[:60]}"
    return "registered"


@limit(megabytes=500, seconds=2)
def list_of_in() -> str:
    """IN with 100,000 terms."""
    answers = Answers("?s :v ?x", f"FILTER(?x IN ({', '.join(f':t{i}' for i in range(100_000))}))")
    answers.push(("v", iri("t99999")))
    answers.push(("v", iri("other")))
    assert answers.count == 1
    return "1 result"


@limit(megabytes=500, seconds=2)
def list_of_values() -> str:
    """VALUES with 100,000 terms."""
    answers = Answers("?s :v ?x", f"VALUES ?x {{ {' '.join(f':t{i}' for i in range(100_000))} }}")
    answers.push(("v", iri("t99999")))
    answers.push(("v", iri("other")))
    assert answers.count == 1
    return "1 result"


def _beside(condition: str, hostile: str) -> str:
    """A query with this condition gets a hostile text; is another query of the same engine answered?"""
    engine = Engine(report=lambda error: None)
    suspect = Answers("?s :v ?x", condition, engine=engine)
    other = Answers("?s :v ?x", engine=engine)
    end = ""
    for text in (hostile, "good"):
        try:
            suspect.push(("v", f'"{text}"'))
        except CqelsError as error:
            end = f", {type(error).__name__}"
    assert other.count == 2, f"{other.count} results of the other query"
    return f"{suspect.count} of 2 results, the other query 2{end}"


@limit(megabytes=300, seconds=3)
def regex_of_nested_repeats() -> str:
    """REGEX(?x, "^(a+)+$") of 50,000 characters."""
    return _beside('FILTER(!REGEX(?x, "^(a+)+$"))', "a" * 50_000 + "!")


@limit(megabytes=300, seconds=3)
def replace_of_alternatives() -> str:
    """REPLACE(?x, "(a|aa)+c", "") of 50,000 characters."""
    return _beside('BIND(REPLACE(?x, "(a|aa)+c", "") AS ?y)', "a" * 50_000 + "b")


@limit(megabytes=300, seconds=10)
def regex_with_back_reference() -> str:
    """REGEX with a back-reference, of 50,000 characters."""
    return _beside('FILTER(!REGEX(?x, "^(a+)+\\\\1b$"))', "a" * 50_000)


@limit(megabytes=1200, seconds=10)
def doubled_text() -> str:
    """a text doubled 33 times by CONCAT, to 8 GB."""
    doubled = " ".join(f"BIND(CONCAT(?x{i}, ?x{i}) AS ?x{i + 1})" for i in range(33))
    return _beside(f"BIND(STR(?x) AS ?x0) {doubled}", "x")


@limit(megabytes=1200, seconds=10)
def replaced_text() -> str:
    """a text made 1,000 times longer by REPLACE, four times."""
    longer = "y" * 1000
    grown = " ".join(f'BIND(REPLACE(?x{i}, ".", "{longer}") AS ?x{i + 1})' for i in range(4))
    return _beside(f"BIND(STR(?x) AS ?x0) {grown}", "x")


@limit(megabytes=600, seconds=10)
def encoded_text() -> str:
    """a text three times longer by ENCODE_FOR_URI, twenty times."""
    grown = " ".join(f"BIND(ENCODE_FOR_URI(?x{i}) AS ?x{i + 1})" for i in range(20))
    return _beside(f"BIND(STR(?x) AS ?x0) {grown}", "%" * 2000)


@limit(megabytes=300, seconds=2)
def window_of_many_digits() -> str:
    """a window, a COUNT and a LIMIT of 5,000 digits."""
    for window, rest in ((f"RANGE {'9' * 5000}s", ""), (f"COUNT {'9' * 5000}", ""), ("NOW", f"LIMIT {'9' * 5000}")):
        try:
            Engine().register(f"SELECT * WHERE {{ STREAM <{EX}s> [{window}] {{ ?s ?p ?o }} }} {rest}")
        except CqelsError as error:
            assert "<query>:1:" in str(error), error
        else:
            raise AssertionError(f"[{window[:9]}…] is registered")
    return "refused, with line and column"
