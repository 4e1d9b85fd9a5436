"""Facts for `cqels bench rules`, drawn from a seed: a network of sensors, vehicles on roads, a university.

An element is an instant: all its facts at one time. `gap` is the time between two of them, so a smaller gap means denser facts over
the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64 = npt.NDArray[np.int64]
Terms = npt.NDArray[np.object_]
Group = tuple[Int64, Terms, str, Terms]
EX = "http://ex.org/"
STREAM = f"{EX}s"
SECOND = 1_000_000
_START = 1_704_067_200 * SECOND
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_SITE = 5
"""Connected nodes."""
_SIGNALS, _VEHICLES, _STUDENTS, _PROFESSORS, _DEPARTMENTS = 20, 400, 1_000, 100, 20


@dataclass(frozen=True, slots=True)
class Facts:
    """Triples in order of time, which is in microseconds; terms in N-Triples syntax. `static`: triples."""

    time: Int64
    subject: Terms
    predicate: Terms
    object: Terms
    static: tuple[tuple[str, str, str], ...] = ()

    def __len__(self) -> int:
        return len(self.time)

    def table(self) -> pa.Table:
        return pa.table(
            {"time": self.time, "subject": self.subject, "predicate": self.predicate, "object": self.object}
        )


@dataclass(frozen=True, slots=True)
class RuleSuite:
    """`draw`: instants, gap in microseconds, size and generator to facts. `size`: the nodes of the network."""

    name: str
    query: str
    draw: Callable[[int, int, int, np.random.Generator], Facts]


def _names(kind: str, numbers: Int64) -> Terms:
    return np.array([f"<{EX}{kind}{number}>" for number in numbers.tolist()], object)


def _all(term: str, count: int) -> Terms:
    return np.full(count, term, object)


def _in_order(groups: list[Group], static: tuple[tuple[str, str, str], ...] = ()) -> Facts:
    """Facts of groups (time since the start, subject, predicate, object)."""
    time = np.concatenate([each[0] for each in groups])
    order = np.argsort(time, kind="stable")
    predicate = np.concatenate([_all(each[2], len(each[0])) for each in groups])
    subject = np.concatenate([each[1] for each in groups])
    value = np.concatenate([each[3] for each in groups])
    return Facts(_START + time[order], subject[order], predicate[order], value[order], static)


def network(instants: int, gap: int, size: int, random: np.random.Generator) -> Facts:
    """A signal comes at each instant for ten seconds, then pauses for five; each second a node monitors each signal.

    Nodes are connected by fives: a node that is flagged by one is flagged by all, until the signal pauses.
    """
    signal, instant = np.tile(np.arange(_SIGNALS), instants), np.repeat(np.arange(instants), _SIGNALS)
    heard = (instant * gap + signal * SECOND) % (15 * SECOND) < 10 * SECOND
    signal, instant = signal[heard], instant[heard]
    seconds = instants * gap // SECOND
    monitored = np.tile(np.arange(_SIGNALS), seconds)
    node = np.arange(size)
    left = node[(node % _SITE != _SITE - 1) & (node + 1 < size)]
    pairs = np.concatenate([np.stack([left, left + 1]), np.stack([left + 1, left])], axis=1)
    static = tuple((f"<{EX}n{a}>", f"<{EX}connected>", f"<{EX}n{b}>") for a, b in pairs.T.tolist())
    return _in_order(
        [
            (instant * gap, _names("z", signal), _TYPE, _all(f"<{EX}Signal>", len(signal))),
            (
                np.repeat(np.arange(seconds), _SIGNALS) * SECOND,
                _names("n", random.integers(0, size, len(monitored))),
                f"<{EX}monitors>",
                _names("z", monitored),
            ),
        ],
        static,
    )


def traffic(instants: int, gap: int, size: int, random: np.random.Generator) -> Facts:
    """The speed of each vehicle at each instant. It stops after 20 instants on average, for five on average."""
    speed = np.zeros((instants, _VEHICLES), np.int64)
    stands = np.zeros(_VEHICLES, np.bool_)
    for instant in range(instants):
        changes = random.random(_VEHICLES) < np.where(stands, 1 / 5, 1 / 20)
        stands ^= changes
        speed[instant] = np.where(stands, 0, random.integers(1, 30, _VEHICLES))
    values = np.array([f'"{v}"^^<http://www.w3.org/2001/XMLSchema#integer>' for v in range(30)], object)
    time = np.repeat(np.arange(instants) * gap, _VEHICLES)
    vehicle = np.tile(np.arange(_VEHICLES), instants)
    return _in_order([(time, _names("v", vehicle), f"<{EX}speed>", values[speed.ravel()])])


def lubm(instants: int, gap: int, size: int, random: np.random.Generator) -> Facts:
    """At each instant ten students take one of three courses, and three professors give one of two."""
    time = np.arange(instants) * gap
    student, professor = random.integers(0, _STUDENTS, 10 * instants), random.integers(0, _PROFESSORS, 3 * instants)
    static = [
        *((f"<{EX}student{n}>", f"<{EX}advisor>", f"<{EX}professor{n % _PROFESSORS}>") for n in range(_STUDENTS)),
        *(
            (f"<{EX}professor{n}>", f"<{EX}worksFor>", f"<{EX}department{n % _DEPARTMENTS}>")
            for n in range(_PROFESSORS)
        ),
        *((f"<{EX}department{n}>", f"<{EX}subOrganizationOf>", f"<{EX}university>") for n in range(_DEPARTMENTS)),
    ]
    return _in_order(
        [
            (
                np.repeat(time, 10),
                _names("student", student),
                f"<{EX}takesCourse>",
                _names("course", student % 50 + random.integers(0, 3, len(student))),
            ),
            (
                np.repeat(time, 3),
                _names("professor", professor),
                f"<{EX}teacherOf>",
                _names("course", professor % 50 + random.integers(0, 2, len(professor))),
            ),
        ],
        tuple(static),
    )


_NETWORK = f"""PREFIX : <{EX}>
RULES ON :s {{
  RULE {{ ?x :flags ?z }} WHERE {{ ?x :monitors ?z . ALWAYS [0s, 4s] {{ SOMETIME [0s, 2s] {{ ?z a :Signal }} }} }}
  RULE {{ ?x :monitors ?z }} FOR [0s, 3s] WHERE {{ ?y :flags ?z . ?x :connected ?y }}
}}
SELECT ?x ?z WHERE {{ STATE {{ ?x :flags ?z }} }}"""
_TRAFFIC = f"""PREFIX : <{EX}>
RULES ON :s {{
  RULE {{ ?v a :Moving }} WHERE {{ ?v :speed ?s FILTER(?s > 0) }}
  RULE {{ ?v a :ShortStop }} WHERE {{
    ?v a :Moving . SOMETIME [1s] {{ ?v :speed 0 }} SOMETIME [2s, 5s] {{ ?v a :Moving }}
  }}
}}
SELECT ?v WHERE {{ STATE {{ ?v a :ShortStop }} }}"""
_LUBM = f"""PREFIX : <{EX}>
RULES ON :s {{
  RULE {{ ?x a :Busy }} FOR [0s, 5s] WHERE {{ ?x :takesCourse ?c }}
  RULE {{ ?x a :Diligent }} WHERE {{ ALWAYS [0s, 7s] {{ ?x a :Busy }} }}
  RULE {{ ?y :guides ?x }} WHERE {{ ?x a :Diligent ; :advisor ?y . SOMETIME [0s, 10s] {{ ?y :teacherOf ?c }} }}
  RULE {{ ?o a :Lively }} FOR [0s, 2s] WHERE {{ ?y :guides ?x ; :worksFor ?o }}
  RULE {{ ?o a :Lively }} WHERE {{ ?d a :Lively ; :subOrganizationOf ?o }}
}}
SELECT ?o WHERE {{ STATE {{ ?o a :Lively }} }}"""

SUITES = (
    RuleSuite("network", _NETWORK, network),
    RuleSuite("traffic", _TRAFFIC, traffic),
    RuleSuite("lubm", _LUBM, lubm),
)
