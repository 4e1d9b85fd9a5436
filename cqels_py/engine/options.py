"""The options of an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cqels_py.errors import CqelsError, UsageError
from cqels_py.formats.contexts import Contexts
from cqels_py.formats.scopes import check_blank_nodes
from cqels_py.formats.times import FAR
from cqels_py.validation import check_callable, whole


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments of `Engine`, which documents them; UsageError for those that make no sense."""

    lateness: int
    batch: int | None
    on_error: str
    report: Callable[[CqelsError], None] | None
    service_timeout: float
    blank_nodes: str
    contexts: Contexts
    max_text: int
    max_waiting: int
    ahead: int | None = None

    def __post_init__(self) -> None:
        if whole(self.lateness, "lateness", "microseconds") < 0:
            raise UsageError(f"lateness is 0 or more microseconds, not {self.lateness}")
        if self.lateness >= FAR:
            raise UsageError(f"lateness is less than {FAR} microseconds, not {self.lateness}")
        if self.ahead is not None and whole(self.ahead, "ahead", "microseconds") < 1:
            raise UsageError(f"ahead is 1 or more microseconds, not {self.ahead}")
        if self.batch is not None and whole(self.batch, "batch", "elements") < 1:
            raise UsageError(f"batch is 1 or more elements, not {self.batch}")
        seconds = self.service_timeout
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
            raise UsageError(f"service_timeout is a number of seconds above 0, not {seconds!r}")
        if whole(self.max_text, "max_text", "bytes") < 1:
            raise UsageError(f"max_text is 1 or more bytes, not {self.max_text}")
        if whole(self.max_waiting, "max_waiting", "results") < 1:
            raise UsageError(f"max_waiting is 1 or more results, not {self.max_waiting}")
        if self.on_error not in ("stop", "skip"):
            raise UsageError(f"on_error is 'stop' or 'skip', not {self.on_error!r}")
        if self.report is not None:
            check_callable(self.report, "report", "a DataError")
        check_blank_nodes(self.blank_nodes)
