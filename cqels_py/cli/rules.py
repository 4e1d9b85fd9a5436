"""`cqels rules`: a program of temporal rules over a file of facts."""

from __future__ import annotations

import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path

from cqels_py.cli.files import text_of
from cqels_py.errors import UsageError

_MICROS = 1_000_000
_FAR = 1 << 60


def print_derived(program: Path, facts: Path, until: str | None) -> None:
    """Print the given and the derived facts as maximal intervals, one a line."""
    from cqels_py.engine.temporal_rules import derived_facts

    lines = derived_facts(
        text_of("program", program),
        text_of("facts", facts).splitlines(),
        None if until is None else _micros(until),
        program_name=str(program),
        facts_name=str(facts),
    )
    sys.stdout.writelines(f"{line}\n" for line in lines)


def _micros(seconds: str) -> int:
    """Microseconds, of seconds with at most six decimals."""
    try:
        micros = Decimal(seconds) * _MICROS
    except InvalidOperation:
        micros = Decimal("nan")
    if not (micros.is_finite() and abs(micros) < _FAR):
        raise UsageError(f"--until is a time in seconds, as in the facts, such as 12 or 2.5, not {seconds!r}")
    if micros != micros.to_integral_value():
        raise UsageError(f"--until has at most six decimals: {seconds}")
    return int(micros)
