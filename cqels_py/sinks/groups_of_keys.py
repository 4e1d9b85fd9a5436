"""Keys that several groups of an answer have, for tables that find a row by the values of its key.

Groups are told apart by terms, rows of a table by values: the groups "Paris"@fr and "Paris"@en, or 3 and 3.0 in a numeric
column, have one key. A table of its own has the row of each such group that stands; the table of the answer shows the one that was
written last.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from cqels_py.sinks.table_changes import Row, net_counts

MARKS: Final = ("_group", "_number", "_new", "_keep", "_state")
"""The columns of a change behind those of the variables: the terms of the group's key; the number of the result that made the row;
did the group have no row before, has it one now (1 or 0); and one of the states below."""
PLAIN, OF_SEVERAL, SHOWN = range(3)
"""States of a change: of a key with one group; of a group among several; the row that the table is to show of several."""
_MOST_REPORTED = 10

_LOG = logging.getLogger("cqels_py")


def _changes_of_groups(rows: Sequence[Row], places: Sequence[int], *, several: bool) -> list[Row]:
    """What results change in all: for each group its row, or only the key if it has none any more, and the MARKS.

    The last column of `rows` is the group; `places`: of the key among the values. `several`: there may be keys with several groups,
    so that rows count that were written again as they had been.
    """
    made = {row[3:]: row[0] for row in rows if row[2] > 0}
    sums: dict[Any, int] = {}
    found: dict[Any, Row] = {}
    for row, count in net_counts(rows).items():
        group = row[-1]
        sums[group] = sums.get(group, 0) + count
        if count > 0:
            found[group] = (*row, made[row])
        elif group not in found:
            found[group] = (*(each if place in places else None for place, each in enumerate(row[:-1])), group, 0)
    if several or max(sums.values(), default=0) > 0:
        for group, row in {row[-1]: row for row in rows}.items():
            if group not in found and row[2] > 0:
                sums[group], found[group] = 0, (*row[3:], row[0])
    # A result has the number 1 or a later one.
    return [(*change, int(sums[group] > 0), int(change[-1] > 0), PLAIN) for group, change in found.items()]


def quoted(name: str) -> str:
    """A name as SQL has it, whatever stands in it."""
    return '"' + name.replace('"', '""') + '"'


def listed(names: Sequence[str], of: str = "") -> str:
    """Quoted names with commas between them; `of`: the alias of their table."""
    return ", ".join(f"{of}.{quoted(name)}" if of else quoted(name) for name in names)


class GroupsOfKeys:
    """The statements for them, which PostgreSQL, SQLite and DuckDB understand.

    `run` executes one, and returns its rows. `shown`: the URL of the table. `names`: quoted ones of the table of the answer, the
    table of groups and the temporary table of changes. `equal`: the operator that finds NULLs equal.
    """

    def __init__(
        self,
        run: Callable[[str], Sequence[Any]],
        shown: str,
        names: tuple[str, str, str],
        variables: Sequence[str],
        key: Sequence[str],
        equal: str,
    ) -> None:
        self._run = run
        self._shown = shown
        self._table, self._groups, self._changes = names
        self._variables = variables
        self._key = key
        self._equal = equal
        # It stays so once there was a row: a transaction that removes the last one may be taken back.
        self._may_have = False
        self._reported: set[str] = set()

    @property
    def marks(self) -> str:
        """The MARKS as columns of a SELECT that makes the table of changes."""
        return "CAST(NULL AS text) AS _group, CAST(0 AS bigint) AS _number, 0 AS _new, 0 AS _keep, 0 AS _state"

    def prepare(self, *, fresh: bool, known: bool) -> None:
        """Make the table of groups if it is not `known`, that is, there. `fresh`: the answer is empty."""
        if fresh:
            self._run(f"DROP TABLE IF EXISTS {self._groups}")
        self._run(
            f"CREATE TABLE IF NOT EXISTS {self._groups} AS SELECT {listed(self._variables)}, CAST(NULL AS text) AS _group, "
            f"CAST(0 AS bigint) AS _number FROM {self._table} LIMIT 0"
        )
        # An earlier process has reported these.
        self._reported |= set(self._keys(f"FROM {self._groups}"))
        # A table of an earlier version may have one row for several groups, which are found when two of them change at once.
        self._may_have = not (fresh or known) or self._rows(f"FROM {self._groups}")

    def changes(self, rows: Sequence[Row]) -> list[Row]:
        """The changes that results make in all, as rows of the temporary table."""
        return _changes_of_groups(rows, [self._variables.index(name) for name in self._key], several=self._may_have)

    def may_concern(self, changes: Sequence[Row]) -> bool:
        """May a key of these changes have several groups? Then the temporary table has to have the changes, and to be settled."""
        return self._may_have or any(change[-3] for change in changes)

    def settle(self) -> bool:
        """If a key has several groups, rewrite the temporary table so that each key has one row, or none; returns whether it has."""
        self._find()
        if not self._rows(f"FROM {self._changes} WHERE _state = {OF_SEVERAL}"):
            return False
        self._may_have = True
        self._apply()
        self._show()
        self._report()
        return True

    def _rows(self, of: str) -> bool:
        return bool(self._run(f"SELECT 1 {of} LIMIT 1"))

    def _find(self) -> None:
        """Mark the changes of keys with several groups, and set the rows aside that the table has of these keys.

        Of which group such a row is, is not known: of the one that the table of groups has not.
        """
        chosen, key, changes = listed(self._variables, "t"), listed(self._key), self._changes
        doubled = f"SELECT _group FROM (SELECT _group, count(*) OVER (PARTITION BY {key}) AS _of FROM {changes}) AS d WHERE _of > 1"
        self._run(
            f"UPDATE {changes} SET _state = {OF_SEVERAL} "
            f"WHERE _group IN ({doubled}) OR _new = 1 AND {self._changed_in(self._table)}"
        )
        for way in self.ways("t", "c"):
            self._run(
                f"INSERT INTO {self._groups} SELECT {chosen}, NULL, 0 "
                f"FROM (SELECT DISTINCT {key} FROM {changes} WHERE _state = {OF_SEVERAL} AND NOT {self._changed_in(self._groups)}) "
                f"AS c CROSS JOIN {self._table} AS t WHERE {way}"
            )
        self._run(f"UPDATE {changes} SET _state = {OF_SEVERAL} WHERE {self._changed_in(self._groups)}")

    def _apply(self) -> None:
        """Change the rows of groups."""
        of_several = f"FROM {self._changes} WHERE _state = {OF_SEVERAL}"
        known = f"SELECT _group FROM {self._groups} WHERE _group IS NOT NULL"
        changed = f"SELECT {listed(self._key)} {of_several}"
        for among in self._among(f"{changed} AND _new = 0 AND _group NOT IN ({known})"):
            self._run(f"DELETE FROM {self._groups} WHERE _group IS NULL AND {among}")
        self._run(f"DELETE FROM {self._groups} WHERE _group IN (SELECT _group {of_several})")
        self._run(
            f"INSERT INTO {self._groups} SELECT {listed(self._variables)}, _group, _number {of_several} AND _keep = 1"
        )

    def _show(self) -> None:
        """Put the rows that the table is to show in place of the changes of groups. Those that are left remove a row."""
        chosen, key = listed(self._variables), listed(self._key)
        for among in self._among(f"SELECT {key} FROM {self._changes} WHERE _state = {OF_SEVERAL}"):
            place = f"row_number() OVER (PARTITION BY {key} ORDER BY _number DESC) AS _place"
            ranked = f"SELECT {chosen}, _number, {place} FROM {self._groups} WHERE {among}"
            self._run(
                f"INSERT INTO {self._changes} SELECT {chosen}, NULL, _number, 0, 1, {SHOWN} FROM ({ranked}) AS r WHERE _place = 1"
            )
        self._run(f"DELETE FROM {self._changes} WHERE _state = {OF_SEVERAL} AND {self._changed_in(self._groups)}")
        for alone in self._among(f"SELECT {key} FROM {self._groups} GROUP BY {key} HAVING count(*) = 1"):
            self._run(f"DELETE FROM {self._groups} WHERE {alone}")

    def _report(self) -> None:
        """Warn of keys that have several groups now, of each once."""
        if len(self._reported) >= _MOST_REPORTED:
            return
        for text in self._keys(f"FROM {self._changes} WHERE _state = {SHOWN} AND {self._changed_in(self._groups)}"):
            if text in self._reported or len(self._reported) >= _MOST_REPORTED:
                continue
            self._reported.add(text)
            last = ". Further keys are not reported" if len(self._reported) == _MOST_REPORTED else ""
            _LOG.warning(
                "%s: several groups of the answer have the key %s, as terms that differ have one value; the table shows the row "
                "that was written last of those that stand. To have a row of each, group by LANG or DATATYPE of the variable, too, "
                "and select it%s",
                self._shown, text, last,
            )  # fmt: skip

    def _keys(self, of: str) -> list[str]:
        """Some keys as texts for messages."""
        rows = self._run(f"SELECT DISTINCT {listed(self._key)} {of} LIMIT {2 * _MOST_REPORTED}")
        return [", ".join(f"{name} = {each}" for name, each in zip(self._key, row, strict=True)) for row in rows]

    # --- equal keys ---------------------------------------------------------------------------------------------------

    def ways(self, one: str, other: str) -> tuple[str, str]:
        """Conditions for equal keys of two tables: of keys without NULLs, which an index finds, and of those with some."""
        names = [quoted(name) for name in self._key]
        nulls = " OR ".join(f"{other}.{name} IS NULL" for name in names)
        plain = " AND ".join(f"{one}.{name} = {other}.{name}" for name in names)
        with_nulls = " AND ".join(f"{one}.{name} {self._equal} {other}.{name}" for name in names)
        return plain, f"({nulls}) AND {with_nulls}"

    def _changed_in(self, table: str) -> str:
        """Is the key of a change in the table?"""
        ways = [f"EXISTS (SELECT 1 FROM {table} AS x WHERE {way})" for way in self.ways("x", self._changes)]
        return f"({' OR '.join(ways)})"

    def _among(self, keys: str) -> tuple[str, str]:
        """Conditions for rows of the table of groups with the keys of a SELECT; each row fulfils one of them at most."""
        _, with_nulls = self.ways("x", self._groups)
        return f"({listed(self._key)}) IN ({keys})", f"EXISTS (SELECT 1 FROM ({keys}) AS x WHERE {with_nulls})"
