"""The names of SPARQL 1.1's functions and aggregates, and suggestions for other names."""

from __future__ import annotations

import re

from cqels_py.suggestions import similar

AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")
FUNCTIONS = (
    "BOUND", "IF", "COALESCE", "EXISTS", "SAMETERM", "ISIRI", "ISURI", "ISBLANK", "ISLITERAL", "ISNUMERIC", "STR", "LANG",
    "DATATYPE", "IRI", "URI", "BNODE", "STRDT", "STRLANG", "UUID", "STRUUID", "STRLEN", "SUBSTR", "UCASE", "LCASE", "STRSTARTS",
    "STRENDS", "CONTAINS", "STRBEFORE", "STRAFTER", "ENCODE_FOR_URI", "CONCAT", "LANGMATCHES", "REGEX", "REPLACE", "ABS",
    "ROUND", "CEIL", "FLOOR", "RAND", "NOW", "YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TIMEZONE", "TZ", "MD5",
    "SHA1", "SHA256", "SHA384", "SHA512",
)  # fmt: skip
_NOT_YET = frozenset(
    ("ISTRIPLE", "TRIPLE", "SUBJECT", "PREDICATE", "OBJECT", "LANGDIR", "HASLANG", "HASLANGDIR", "STRLANGDIR")
)
"""Functions of SPARQL 1.2."""
_ELSEWHERE = {
    "AVERAGE": "AVG", "MEAN": "AVG", "LENGTH": "STRLEN", "LEN": "STRLEN", "STRINGLENGTH": "STRLEN", "UPPER": "UCASE",
    "UPPERCASE": "UCASE", "TOUPPER": "UCASE", "LOWER": "LCASE", "LOWERCASE": "LCASE", "TOLOWER": "LCASE", "SUBSTRING": "SUBSTR",
    "STARTSWITH": "STRSTARTS", "ENDSWITH": "STRENDS", "SUBSTRINGBEFORE": "STRBEFORE", "SUBSTRINGAFTER": "STRAFTER",
    "MATCHES": "REGEX", "LIKE": "REGEX", "ISNULL": "BOUND", "IFNULL": "COALESCE", "NVL": "COALESCE", "CEILING": "CEIL",
    "CURRENTDATETIME": "NOW", "HOUR": "HOURS", "MINUTE": "MINUTES", "SECOND": "SECONDS", "STRING": "STR", "TYPE": "DATATYPE",
}  # fmt: skip
"""Their names in XPath, SQL and other languages, in capital letters and without separators."""


def is_not_yet(name: str) -> bool:
    """Is it a function of SPARQL 1.2 that SPARQL 1.1 does not have?"""
    return name.upper() in _NOT_YET


def meant_by(name: str) -> str | None:
    """The function or aggregate that is probably meant by a name; None where none is near.

    >>> meant_by("upper-case"), meant_by("CONTAIN"), meant_by("median")
    ('UCASE', 'CONTAINS', None)
    """
    plain = re.sub(r"[^A-Z0-9]", "", name.upper())
    known = {re.sub("_", "", each): each for each in (*AGGREGATES, *FUNCTIONS)}
    if plain in _ELSEWHERE:
        return _ELSEWHERE[plain]
    close = similar(plain, known, least=0.8)
    return known[close] if close else None


def instead_of(name: str) -> str:
    """A hint for an unknown function."""
    meant = meant_by(name)
    if meant is not None:
        return f"write {meant}(…)"
    return f"SPARQL 1.1 has {', '.join(FUNCTIONS)}, and the aggregates {', '.join(AGGREGATES)}"
