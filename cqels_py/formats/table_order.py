"""The time order of a table's rows: checked before any row is taken, or established by sorting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import concatenate_elements, take_elements
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, Place
from cqels_py.formats.tabular import times_of_column
from cqels_py.formats.times import FAR, questionable
from cqels_py.functions.dates import instant_text

Times = npt.NDArray[np.int64]


class OrderCheck:
    """Checks the times of consecutive rows, part by part. DataError for the first that is more than `lateness` before
    an earlier one.

    Invalid times are ignored. `unit`: the word for the numbered items, from 1: "row" or "element". `taken`: a sentence
    for the message about the rows before the wrong one.
    """

    def __init__(self, lateness: int, unit: str, taken: str) -> None:
        self._lateness = lateness
        self._unit = unit
        self._taken = taken
        self._newest, self._newest_at, self._count = -FAR, 0, 0

    def look(self, times: Times) -> None:
        """Check the next times (n)."""
        if not len(times):
            return
        first, last = times.item(0), times.item(-1)
        if first >= self._newest and last < FAR and not (times[1:] < times[:-1]).any():
            self._newest, self._newest_at = last, self._count + len(times)
        else:
            self._look_closely(times)
        self._count += len(times)

    def _look_closely(self, times: Times) -> None:
        is_time = (times > -FAR) & (times < FAR)
        newest = np.maximum.accumulate(np.maximum(np.where(is_time, times, -FAR), self._newest))
        behind = is_time & (times < newest - self._lateness)
        if behind.any():
            at = int(behind.argmax())
            before = newest.item(at)
            places = np.flatnonzero(is_time[:at] & (times[:at] == before))
            self._refuse(
                self._count + at + 1, times.item(at), int(places[-1]) + self._count + 1 if len(places) else None, before
            )
        self._newest = newest.item(-1)
        if len(places := np.flatnonzero(times == self._newest)):
            self._newest_at = self._count + int(places[-1]) + 1

    def _refuse(self, at: int, time: int, before_at: int | None, before: int) -> NoReturn:
        by = f" by more than the lateness of {self._lateness} microseconds" if self._lateness else ""
        raise DataError(
            f"the time {_shown(time)} is before that of {self._unit} {before_at or self._newest_at}, {_shown(before)}{by}: a table "
            f"is in order of time. sort=True sorts it; Engine(lateness=…) accepts late rows. {self._taken}",
            Place(at, None, self._unit),
        )


def _shown(time: int) -> str:
    return f"{time} ({instant_text(time)})"


NOTHING_TAKEN = "Nothing was taken from the table"
BEFORE_TAKEN = "The elements that ended before it were taken from the reader"


def is_read_once(table: Any) -> bool:
    """Whether this is a reader, which has no length and can be read only once."""
    return isinstance(table, pa.RecordBatchReader) or not hasattr(type(table), "__len__")


def times_of_rows(table: pa.Table) -> Times | None:
    """Microseconds of each row (n). None for fewer than two rows, and without one column `time`: reading the table reports that."""
    if table.num_rows < 2 or table.schema.names.count("time") != 1:
        return None
    found = [times_of_column(chunk) for chunk in table.column("time").chunks]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def with_times(table: pa.Table, times: Times) -> pa.Table:
    """The table with texts of times replaced by timestamps. Unchanged if one of them has to be reported."""
    place = table.schema.names.index("time")
    is_text = table.schema.field(place).type in (pa.string(), pa.large_string())
    if not is_text or not len(times) or times.min() <= -FAR or times.max() >= FAR or len(questionable(times)):
        return table
    return table.set_column(place, "time", pa.array(times, pa.timestamp("us")))


def order_of(times: Times) -> npt.NDArray[np.int64] | None:
    """The positions of rows in order of time. Rows with equal times keep their order; a row without a time stays behind
    the one before. None if no row moves.
    """
    is_time = (times > -FAR) & (times < FAR)
    if not is_time.all():
        last = np.maximum.accumulate(np.where(is_time, np.arange(len(times)), -1))
        times = np.where(last >= 0, times[np.maximum(last, 0)], -FAR)
    return np.argsort(times, kind="stable") if (times[1:] < times[:-1]).any() else None


def elements_in_order(
    batches: Iterator[ElementBatch], lateness: int, dictionary: Dictionary, *, once: bool, sort: bool
) -> Iterator[ElementBatch]:
    """Elements that carry their own times: checked as a whole or sorted first; with `once`, checked as they come.

    A DataError while reading is raised after the elements before it.
    """
    check = OrderCheck(lateness, "element", BEFORE_TAKEN if once else NOTHING_TAKEN)
    if once:
        for batch in batches:
            check.look(batch.time)
            yield batch
        return
    taken, failure = list[ElementBatch](), None

    def held() -> Iterator[Ids]:
        for batch in taken:
            yield from batch.live_ids()

    with dictionary.holding(held):
        try:
            taken.extend(batches)
        except DataError as error:
            failure = error
        if sort and taken:
            together = concatenate_elements(taken)
            order = order_of(together.time)
            taken = [together if order is None else take_elements(together, order)]
        else:
            for batch in taken:
                check.look(batch.time)
        yield from taken
    if failure is not None:
        raise failure
