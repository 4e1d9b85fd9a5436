"""Calls of an engine, one after the other, each as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from cqels_py.errors import UsageError

if TYPE_CHECKING:
    from cqels_py.engine.delivery import Delivery
    from cqels_py.engine.engine import Engine

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def in_turn(method: Callable[Concatenate[Engine, Given], Answer]) -> Callable[Concatenate[Engine, Given], Answer]:
    """Makes the method, or a function of an engine, exclusive: calls of other threads wait until it returns.

    Subscribers cannot call it. Results that it has not delivered are delivered after it.
    """

    @wraps(method)
    def alone(engine: Engine, /, *arguments: Given.args, **named: Given.kwargs) -> Answer:
        name = method.__name__.removeprefix("_")
        if engine._pending.is_here():
            raise called_by_subscriber(name)
        deliveries: Sequence[Delivery] = ()
        try:
            with engine._turn:
                if engine._steps.busy:
                    raise called_by_subscriber(name)
                try:
                    return method(engine, *arguments, **named)
                finally:
                    deliveries = engine._pending.take()
        finally:
            if deliveries or engine._reports.due:
                engine._deliver(deliveries)

    return alone


def called_by_subscriber(method: str) -> UsageError:
    """The error of a method that subscribers cannot call."""
    return UsageError(f"{method}() cannot be called by a subscriber while results are delivered; push() can")
