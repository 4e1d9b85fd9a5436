"""The short way of a pushed element: one compiled call, and the delivery of its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cqels_py.errors import DataError
from cqels_py.formats.times import LIKELY_FROM, LIKELY_TO
from cqels_py.formats.triples import term_lines, triple_texts
from cqels_py.interrupts import undisturbed
from cqels_py.runners.single_elements import SingleElements

if TYPE_CHECKING:
    from cqels_py.engine.engine import Engine


class SinglePush:
    """Pushes single elements of one stream, which `single` takes in, to an engine without a batch size.

    Of all that `Engine.push` does it looks only at the things that may change with each element.
    """

    def __init__(self, engine: Engine, stream: str, single: SingleElements) -> None:
        self._engine, self._stream, self._single, self._take = engine, stream, single, single.take
        self._turn, self._lock, self._steps = engine._turn, engine._lock, engine._steps
        self._pending, self._reports = engine._pending, engine._reports
        self._keeps = engine._inputs.keeps

    def push(self, triples: Any, time: Any) -> bool:
        """Take in an element, and deliver its results; see `Engine.push`. False: nothing has happened, as it, or the engine, needs a
        closer look.
        """
        if type(time) is not int or type(triples) is not list or not LIKELY_FROM <= time < LIKELY_TO:
            return False
        if not self._single.is_open:
            return False
        lines = term_lines(triples)
        return lines is not None and self._push(time, lines, triples)

    def push_row(self, table: Any) -> bool:
        """As `push`, for an Arrow table of one row."""
        element = self._engine._single_rows.element(table)
        return element is not None and self._push(*element)

    @undisturbed
    def _push(self, time: int, lines: bytes, triples: Sequence[Any] | None = None) -> bool:
        """`lines`: the terms of `triples`, or, without these, of one; then an element that is not taken in is none that was pushed.

        It is one function, as calls of further ones would be most of its time.
        """
        engine, steps, pending = self._engine, self._steps, self._pending
        if pending.threads or engine._clocks.unseen:
            return False
        wrong: Sequence[DataError] = ()
        with self._turn:
            if engine._pushed or engine._overfull or steps.busy or steps.ended is not None or not self._single.stands:
                return False
            scope, count = engine._elements + 1, 1 if triples is None else len(triples)
            taken = not self._keeps or self._keep(time, lines, count, scope)
            if taken:
                self._lock.acquire()
                steps.busy = True
                try:
                    taken = self._take(time, lines, count, scope)
                except BaseException as error:
                    steps.fail(error)
                    raise
                finally:
                    steps.busy = False
                    self._lock.release()
            if taken:
                engine._elements = scope
            elif triples is None:
                return False
            else:
                engine._append(self._stream, triple_texts(triples), time, None)
                wrong = engine._evaluate(as_one=False)
            deliveries = pending.take()
        if self._keeps:
            engine._inputs.sync()
        failures = pending.deliver(deliveries) if deliveries else []
        if engine._pushed or failures or wrong or self._reports.due or pending.failed:
            engine._delivered(failures, wrong, some=len(deliveries) > 0)
        return True

    def _keep(self, time: int, lines: bytes, triples: int, scope: int) -> bool:
        """Tell the inputs of an element, which is to be taken in then. False: nothing has happened, and it has to be pushed.

        StorageError if it cannot be kept: nothing was taken in.
        """
        engine, single = self._engine, self._single
        # The id of a blank node depends on more than its line, as it is kept.
        if not engine._inputs.takes_singles or b"_:" in lines or not single.encode(time, lines, triples, scope):
            return False
        engine._elements = scope
        engine._inputs.single(single.stream, time, lines)
        return True
