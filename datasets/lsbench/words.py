"""Invented words: names of persons and towns, hashtags, sentences. Columns of texts, indexed by number."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .network import TAGS, Codes, Numbers


def _words(text: str) -> list[str]:
    return text.split()


_FIRST = _words(
    "Ines Amal Bruno Clara Dario Elena Farid Greta Hugo Ilona Jonas Kamala Liang Marta Noor Oskar Paula Quentin Rosa Samir "
    "Tove Umar Vera Wim Ximena Yusuf Zora Anneke Bela Chiara Dmitri Esra Finn Gia Hana Igor Jun Katya Luis Mei"
)
_LAST = _words(
    "Varga Abel Brandt Castillo Dahl Eriksen Ferrari Grau Haas Ito Jansen Kovac Lund Moreau Nagy Okafor Petrov Quist Rossi "
    "Silva Tanaka Ueda Vogel Weiss Xu Yilmaz Zeman Andersen Bakker Costa Diallo Engel Fischer Gomez Horvat Ibarra Joshi Kaya "
    "Lopes Meyer Novak Olsen Park Reyes Sato Toth Ulrich Vidal Wolf Young"
)
_WORDS = _words(
    "the day began with rain and ended in song while nobody in town had slept because of what we heard about this new "
    "record which everybody calls a masterpiece though its makers say that it took them only one long weekend"
)
_SYLLABLES = re.findall("..", "balocuderifamigohajukelanimoparesutivawoyazepubo")


def first_names(rank: Codes) -> pa.Array:
    """Rank 0 is Ines Varga; the first 2,000 have different names."""
    return pa.array(_FIRST).take(pa.array(rank % len(_FIRST)))


def last_names(rank: Codes) -> pa.Array:
    # After 200 ranks, 40 and 50 names would meet again: from there on they are shifted against one another.
    return pa.array(_LAST).take(pa.array((rank + rank // 200) % len(_LAST)))


@cache
def hashtags() -> pa.Array:
    """Hashtags by number."""
    return pa.array(_made(np.arange(TAGS) * 7_919 + 523))


@cache
def towns(number: int) -> pa.Array:
    return pa.array([word.capitalize() for word in _made(np.arange(number) * 613 + 97)])


@cache
def _sentences() -> pa.Array:
    """Beginnings and ends of contents: of four to twenty-three words."""
    random = np.random.default_rng(7)
    places = random.integers(0, len(_WORDS), (400, 23))
    lengths = random.integers(4, 24, 400)
    return pa.array([" ".join(_WORDS[i] for i in row[:long]) for row, long in zip(places, lengths, strict=True)])


def contents(draw: Numbers, about: pa.Array | None = None) -> pa.Array:
    """Texts by random numbers from [0, 1), each with the word that it is about, if any."""
    place = (draw * 400 * 400).astype(np.int64)
    parts = [_sentences().take(pa.array(place // 400)), _sentences().take(pa.array(place % 400))]
    if about is not None:
        parts.insert(1, about)
    return pc.binary_join_element_wise(*parts, " ")


def _made(codes: Codes) -> list[str]:
    """Words of three syllables, different for codes that differ modulo 13,824."""
    digits = codes[:, None] // len(_SYLLABLES) ** np.arange(3) % len(_SYLLABLES)
    return ["".join(_SYLLABLES[digit] for digit in row) for row in digits]
