"""How far the output of a run is, for a run that continues."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from cqels_py.state.named_values import NamedValues

_WRITER = "writer."


@dataclass(frozen=True, slots=True)
class Written:
    """How far an output is: the `length` of its file in bytes (0: it has none), and the `writer`'s state, such as a graph's number.

    `left`: how many results are still to be written, with --limit.

    >>> Written.of(Written(20, {"graphs": 3}, left=4).values())
    Written(length=20, writer={'graphs': 3}, left=4)
    """

    length: int = 0
    writer: NamedValues = field(default_factory=dict)
    left: int | None = None

    def values(self) -> NamedValues:
        """As a part of a snapshot."""
        return {
            "output": self.length,
            "left": self.left,
            **{_WRITER + name: value for name, value in self.writer.items()},
        }

    @classmethod
    def of(cls, values: NamedValues) -> Written:
        """From a part of a snapshot."""
        writer = {name.removeprefix(_WRITER): value for name, value in values.items() if name.startswith(_WRITER)}
        # Snapshots of earlier versions do not have it.
        return cls(cast(int, values["output"]), writer, cast("int | None", values.get("left")))
