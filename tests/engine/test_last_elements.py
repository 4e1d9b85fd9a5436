"""What an engine remembers of its last elements: they are those that came, and of fast streams a few a second."""

from __future__ import annotations

from cqels_py.engine.documents import Document
from cqels_py.engine.engine import Engine
from cqels_py.engine.last_elements import A_SECOND, KEPT, LastElements

EX = "http://ex.org/"
STREAM, OTHER = f"{EX}readings", f"{EX}other"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def push(engine: Engine, *names: str, stream: str = STREAM, more: str = "") -> None:
    lines = [f"<{EX}{name}> <{EX}p> <{EX}o> .\n{more}" for name in names]
    engine.push_document(stream, Document("".join(lines).encode(), "nt"))


def subjects(seen: LastElements, stream: str = STREAM) -> list[str]:
    return [each.quads[0][0].removeprefix(f"<{EX}").rstrip(">") for each in seen.of(stream)]


def test_elements_of_each_stream_whether_it_is_read_or_not() -> None:
    with Engine(on_unread="ignore") as engine:
        seen = engine.watched = LastElements(engine.dictionary, Clock())
        engine.register(f"SELECT * {{ STREAM <{STREAM}> [NOW] {{ ?s ?p ?o }} }}")
        push(engine, "a", "b")
        push(engine, "c", stream=OTHER)
        assert (subjects(seen), subjects(seen, OTHER)) == (["a", "b"], ["c"])
        assert seen.of(STREAM)[0].text == f"<{EX}a> <{EX}p> <{EX}o> ."
        assert seen.of(f"{EX}unknown") == []
        assert (seen.latest(OTHER), seen.latest(f"{EX}unknown")) == (seen.of(OTHER)[0].time, None)


def test_a_fast_stream_is_seen_now_and_then_and_the_last_ones_are_kept() -> None:
    with Engine(on_unread="ignore") as engine:
        clock = Clock()
        seen = engine.watched = LastElements(engine.dictionary, clock)
        push(engine, *(f"s{number}" for number in range(1000)))
        assert subjects(seen) == [f"s{number}" for number in range(1000 - A_SECOND, 1000)]
        push(engine, "missed")
        clock.now += 60
        push(engine, "later")
        assert subjects(seen)[-2:] == ["s999", "later"]
        for number in range(2 * KEPT):
            clock.now += 60
            push(engine, f"t{number}")
        assert subjects(seen) == [f"t{number}" for number in range(KEPT, 2 * KEPT)]


def test_properties_and_classes_are_known_and_long_terms_are_not() -> None:
    a = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    with Engine(on_unread="ignore") as engine:
        seen = engine.watched = LastElements(engine.dictionary, Clock())
        push(engine, "a", more=f'<{EX}a> {a} <{EX}Sensor> .\n<{EX}a> <{EX}long> "{"x" * 10_000}" .\n')
        assert sorted(seen.terms_of(STREAM)) == [f"<{EX}Sensor>", f"<{EX}p>"]
        assert [each.whole for each in seen.of(STREAM)] == [False]
        assert seen.of(STREAM)[0].text.endswith("\n…")
