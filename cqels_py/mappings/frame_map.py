"""How rows of wide tables, such as data frames, become elements: a row is one, a column is a property of its subject."""

from __future__ import annotations

import re
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass
from typing import Any

from cqels_py.errors import UsageError
from cqels_py.iris import is_iri
from cqels_py.mappings.mapping import TIME, Mapping
from cqels_py.terms.canonical import is_bare_iri

SUBJECT = "subject"
"""The variable of a row's subject; those of its columns are their numbers."""
_FIELD = re.compile(r"\{([^{}]*)\}")
_EXAMPLE = (
    'push_frame(stream, frame, subject="http://ex.org/{sensor}", time="time", '
    'columns={"temperature": "http://ex.org/temperature"})'
)


@dataclass(frozen=True, slots=True)
class IriTemplate:
    """An IRI with columns' names in braces. `texts`: those before, between and after the columns `names`."""

    text: str
    texts: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, given: object, argument: str) -> IriTemplate:
        """UsageError for a text that makes no IRI."""
        text = str(given).removeprefix("<").removesuffix(">") if isinstance(given, str) else ""
        parts = _FIELD.split(text)
        begins_with_iri = is_bare_iri(text.replace("{", "").replace("}", "")) and is_iri(_FIELD.sub("0", text))
        if not text or not (begins_with_iri or parts[0] == ""):
            raise UsageError(
                f'{argument} is an IRI with columns in braces, such as "http://ex.org/{{sensor}}", not {given!r}'
            )
        return cls(text, tuple(parts[::2]), tuple(parts[1::2]))


@dataclass(frozen=True, slots=True)
class FrameMap:
    """How a row of a wide table becomes an element: of `subject`, at the time in the column `time`.

    `columns`: each column, its property in N-Triples syntax, and the template of the IRI that its value makes; None: a literal.
    """

    subject: IriTemplate
    time: str
    columns: tuple[tuple[str, str, IriTemplate | None], ...]

    @classmethod
    def of(cls, subject: object, time: object, columns: object) -> FrameMap:
        """`columns`: a property for each column, or a property and the template of an IRI. UsageError for anything else."""
        if not isinstance(columns, AnyMapping) or not columns:
            raise UsageError(f"columns is a mapping of columns to properties, not {columns!r}: {_EXAMPLE}")
        if not isinstance(time, str):
            raise UsageError(f"time is the name of the column with the times, not {time!r}: {_EXAMPLE}")
        return cls(IriTemplate.of(subject, "subject"), time, tuple(_column(*each) for each in columns.items()))

    @property
    def names(self) -> list[str]:
        """The columns of the table that are read."""
        templates = [self.subject, *(template for *_, template in self.columns if template is not None)]
        plain = [name for name, _, template in self.columns if template is None]
        return list(dict.fromkeys([self.time, *plain, *(name for template in templates for name in template.names)]))

    @property
    def mapping(self) -> Mapping:
        """The triples of a row: the variables are the numbers of columns."""
        template = tuple((f"?{SUBJECT}", predicate, f"?{at}") for at, (_, predicate, _) in enumerate(self.columns))
        return Mapping("", None, template, (), (SUBJECT, *map(str, range(len(self.columns))), TIME))


def _column(name: object, given: Any) -> tuple[str, str, IriTemplate | None]:
    pair = given if isinstance(given, tuple) else (given, None)
    if not isinstance(name, str) or len(pair) != 2:
        raise UsageError(f"columns is a mapping of columns to properties: {name!r}: {given!r} is none; {_EXAMPLE}")
    predicate, template = pair
    iri = str(predicate).removeprefix("<").removesuffix(">") if isinstance(predicate, str) else ""
    if not (is_bare_iri(iri) and is_iri(iri)):
        raise UsageError(f"the property of the column {name!r} is an IRI, not {predicate!r}: {_EXAMPLE}")
    return (
        name,
        f"<{iri}>",
        None if template is None else IriTemplate.of(template, f"the object of the column {name!r}"),
    )
