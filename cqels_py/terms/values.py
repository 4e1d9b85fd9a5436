"""Python's values as terms: the one conversion, for every place where a program gives a term.

>>> text_of(21.5), text_of(True)
('"21.5"^^<http://www.w3.org/2001/XMLSchema#double>', '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>')

Arrow's columns become the same terms (`mappings.terms`), so that a value joins with itself whichever way it came.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np

from cqels_py.errors import UsageError
from cqels_py.terms.canonical import is_bare_iri
from cqels_py.terms.layout import XSD
from cqels_py.terms.rdf import from_rdflib

_END = f'"^^<{XSD}'
_TAKEN = "an rdflib term, a text in N-Triples syntax, int, float, bool, Decimal, datetime or date"
_MEANT = {
    f'"{written}{_END}{name}>': f'"{meant}{_END}{name}>'
    for written, meant in (("inf", "INF"), ("-inf", "-INF"), ("nan", "NaN"))
    for name in ("double", "float")
}
_MISSING = ("None", "NaT", "<NA>")
_LEAST_PLAIN, _LEAST_WITH_EXPONENT = -6, 10
"""Powers of ten: a double between them is written without an exponent, as Arrow does."""


def text_of(value: Any) -> str:
    """A value in N-Triples syntax. UsageError for a value that is no term; a text is taken as it is, and not validated.

    int is xsd:integer, float xsd:double, Decimal xsd:decimal, date xsd:date and datetime xsd:dateTime, in UTC if it has a zone.
    """
    convert = _BY_TYPE.get(type(value))
    if convert is not None:
        return convert(value)
    if hasattr(value, "n3"):
        return _of_rdflib(value)
    if isinstance(value, np.datetime64):
        return _of_datetime64(value)
    if isinstance(value, np.generic):
        return _of_numpy(value)
    for kind in (str, bool, int, float, Decimal, datetime, date):
        if isinstance(value, kind):
            return _BY_TYPE[kind](value)
    raise UsageError(f"a term is {_TAKEN}, not {value!r}{_instead(value)}")


def node_text(text: str) -> str:
    """A text at the place of a subject or predicate: as it is, or an IRI without its angle brackets.

    >>> node_text("http://ex.org/a"), node_text("_:b")
    ('<http://ex.org/a>', '_:b')
    """
    return f"<{text}>" if text[:1] not in ("<", "_") and is_bare_iri(text) else text


def double_text(value: float) -> str:
    """The shortest text of a double that is read as the same one.

    >>> double_text(20.0), double_text(1e-5), double_text(1e10)
    ('20', '0.00001', '1e+10')
    """
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "INF" if value > 0 else "-INF"
    text = float.__repr__(value)
    if "e" not in text and abs(value) < 10**_LEAST_WITH_EXPONENT:
        return text.removesuffix(".0")
    sign, digits, exponent = Decimal(text).normalize().as_tuple()
    assert isinstance(exponent, int)
    power = exponent + len(digits) - 1
    if _LEAST_PLAIN <= power < _LEAST_WITH_EXPONENT:
        return format(Decimal(text).normalize(), "f")
    shown = "".join(map(str, digits))
    fraction = f".{shown[1:]}" if len(shown) > 1 else ""
    return f"{'-' if sign else ''}{shown[0]}{fraction}e{power:+d}"


def _of_rdflib(value: Any) -> str:
    """Of a float rdflib writes three values as Python does: infinities and NaN, which are no texts of xsd:double."""
    text = from_rdflib(value)
    return _MEANT.get(text, text)


def _of_text(value: str) -> str:
    return str(value)


def _of_bool(value: bool) -> str:
    return f'"{"true" if value else "false"}{_END}boolean>'


def _of_int(value: int) -> str:
    return f'"{int.__repr__(value)}{_END}integer>'


def _of_float(value: float) -> str:
    return f'"{double_text(value)}{_END}double>'


def _of_decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise UsageError(
            f"xsd:decimal has no {value}: write float({str(value)!r}), which is xsd:double, or leave it out"
        )
    return f'"{value:f}{_END}decimal>'


def _of_datetime(value: datetime) -> str:
    if value != value:
        raise UsageError(f"a term is {_TAKEN}, not {value!r}{_instead(value)}")
    if value.tzinfo is None:
        return f'"{_without_zeros(value.isoformat())}{_END}dateTime>'
    return f'"{_without_zeros(value.astimezone(UTC).replace(tzinfo=None).isoformat())}Z{_END}dateTime>'


def _of_date(value: date) -> str:
    return f'"{value.isoformat()}{_END}date>'


def _of_datetime64(value: np.datetime64) -> str:
    if np.isnat(value):
        raise UsageError(f"a term is {_TAKEN}, not {value!r}{_instead(value)}")
    unit = np.datetime_data(value)[0]
    if unit in ("Y", "M", "W", "D"):
        return f'"{value.astype("datetime64[D]")}{_END}date>'
    return f'"{_without_zeros(str(value.astype("datetime64[s]") if unit in ("h", "m") else value))}{_END}dateTime>'


def _of_numpy(value: np.generic) -> str:
    plain = float(value) if isinstance(value, np.floating) else value.item()
    if isinstance(value, np.timedelta64) or type(plain) not in _BY_TYPE:
        raise UsageError(f"a term is {_TAKEN}, not {value!r}{_instead(value)}")
    return _BY_TYPE[type(plain)](plain)


def _without_zeros(text: str) -> str:
    """The text of an instant without the zeros at the end of its fraction, nor a fraction of zeros."""
    return text.rstrip("0").removesuffix(".") if "." in text else text


def _instead(value: object) -> str:
    if str(value) in _MISSING:
        return ": leave the triple out where a value is missing"
    if isinstance(value, bytes):
        return ": write value.decode()"
    if isinstance(value, list | tuple | set):
        return ": write a triple for each of them"
    return ": write rdflib.Literal(…), or a text such as '\"PT5S\"^^<http://www.w3.org/2001/XMLSchema#duration>'"


_BY_TYPE: dict[type, Callable[[Any], str]] = {
    str: _of_text,
    bool: _of_bool,
    int: _of_int,
    float: _of_float,
    Decimal: _of_decimal,
    datetime: _of_datetime,
    date: _of_date,
}
