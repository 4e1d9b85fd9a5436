"""Which triples form an element where elements are told apart by subject: nested blank nodes belong to the subject that
refers to them.

A run is consecutive triples of one subject. A node names another one that is an object of its triples, and those that
this one names. Each element has a root:

- An IRI, with all of its runs up to another IRI. It is divided where a blank node is between them that none of them
  leads to. It may own every blank node whose runs are after the IRI before it and before the IRI after it.
- A blank node that no IRI may own, nor another blank node. It may own those that are between the same two IRIs.

Of all that may own a node, the first root owns it. A blank node owns all of its runs between two IRIs.

Until an IRI comes, blank nodes wait for one that names them, up to a limit in triples. When more are waiting, the roots
among them whose elements end in the first half are settled as if no IRI would come. The result never depends on how
runs are divided into calls.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.values.inline import tag_of, tagged
from cqels_py.kernels.values.murmur import mix64
from cqels_py.terms.layout import TAG_BLANK

LOOKAHEAD = 1 << 17
"""Most triples of blank nodes that wait for an IRI to name them."""

OPEN = -1
"""The owner of a run that is not settled yet."""

# Rows of `work`, a cell for each run. LABEL: the number of a blank subject, -1 for an IRI; FOLLOWING: the next run with
# the same blank subject, -1: none; STACK: runs whose triples are still to be searched; DIVIDED: does an element begin
# here, because an element of the same IRI ends before it? WAITED: triples that wait up to and including a run, 0 if it
# does not wait; ENDS: the last run of a root; TURN: a number by which runs are ordered in the order in which they are
# settled. By the number of a blank subject: HEAD: its first run that may still be open; NAMED: the mark of the search
# in which it was named.
LABEL, FOLLOWING, STACK, DIVIDED, WAITED, ENDS, TURN, HEAD, NAMED = range(9)
WORK_ROWS = 9

# Cells of `state`. LIMIT: triples that may wait before the first IRI, kept from call to call. The others are of the
# current search: its MARK; LOW: its root's nodes are not before this run; ROOT: after this run GAP_ROWS triples are not
# the root's; TURNS: how often some of the waiting triples were settled.
LIMIT, MARK, LOW, ROOT, GAP_ROWS, TURNS = range(6)
STATE_CELLS = 6

_NO_TURN = np.int64(1 << 40)
_BLANK_MASK = np.uint64((1 << 60) - 1)


@jit_inline
def _place(table, identifier):
    """The index of the entry (id, number) of a blank node in `table`, or where it would be."""
    mask = np.int64(len(table) // 2 - 1)
    at = identifier & mask
    while table[2 * at] != 0 and table[2 * at] != identifier:
        at = (at + 1) & mask
    return at


@jit_flat
def number_labels(rows, first, table, work, names):
    """Number the blank subjects of runs first[r] to first[r + 1] of `rows`. `names` (rows): the number of each object,
    or -1.

    `table` is empty and its size is a power of two, with two cells each for at least twice as many entries as there are
    runs.
    """
    count = 0
    for r in range(len(first) - 1):
        subject = rows[0, first[r]]
        work[LABEL, r] = -1
        work[FOLLOWING, r] = -1
        work[TURN, r] = 0
        if tag_of(subject) != TAG_BLANK:
            continue
        at = _place(table, subject)
        if table[2 * at] == 0:
            table[2 * at] = subject
            table[2 * at + 1] = count
            work[HEAD, count] = r
            work[NAMED, count] = 0
            # The last run, until all are linked.
            work[ENDS, count] = r
            count += 1
        else:
            label = table[2 * at + 1]
            work[FOLLOWING, work[ENDS, label]] = r
            work[ENDS, label] = r
        work[LABEL, r] = table[2 * at + 1]
    for row in range(rows.shape[1]):
        names[row] = -1
        if tag_of(rows[2, row]) == TAG_BLANK:
            at = _place(table, rows[2, row])
            if table[2 * at] != 0:
                names[row] = table[2 * at + 1]


@jit_flat
def _own(run, root, first, state, owner):
    """Assign a run to a root."""
    owner[run] = root
    if run > state[ROOT]:
        state[GAP_ROWS] -= first[run + 1] - first[run]


@jit_flat
def _own_label(label, root, high, taken, top, first, state, work, owner):
    """Assign to a root the runs of a blank subject that it may own: open ones and those of `taken`, from LOW up to
    `high`.

    They are pushed on the stack, whose new size is returned.
    """
    work[NAMED, label] = state[MARK]
    while work[HEAD, label] >= 0 and work[HEAD, label] < state[LOW]:
        work[HEAD, label] = work[FOLLOWING, work[HEAD, label]]
    run = work[HEAD, label]
    while run >= 0 and run < high:
        if owner[run] == OPEN or owner[run] == taken:
            _own(run, root, first, state, owner)
            work[STACK, top] = run
            top += 1
        run = work[FOLLOWING, run]
    return top


@jit_flat
def _reach(root, high, taken, top, names, first, state, work, owner):
    """Assign to a root all nodes that the runs on the stack name, transitively."""
    while top > 0:
        top -= 1
        run = work[STACK, top]
        for row in range(first[run], first[run + 1]):
            label = names[row]
            if label >= 0 and work[NAMED, label] != state[MARK]:
                top = _own_label(label, root, high, taken, top, first, state, work, owner)


@jit_flat
def _begin(low, root, state):
    """Begin a new search for the nodes of roots."""
    state[MARK] += 1
    state[LOW] = low
    state[ROOT] = root
    state[GAP_ROWS] = 0


@jit_flat
def _take_run(run, root, high, names, first, state, work, owner):
    """Assign a run to the root, with all nodes before `high` that it leads to."""
    _own(run, root, first, state, owner)
    work[STACK, 0] = run
    _reach(root, high, OPEN, 1, names, first, state, work, owner)


@jit_flat
def _settle_blanks(low, high, taken, names, first, state, work, owner):
    """Settle the open runs among low … high - 1 as elements of blank nodes, which may also take those of root `taken`
    there.

    Returns how many runs `taken` has lost.
    """
    state[MARK] += 1
    named = state[MARK]
    had = np.int64(0)
    for run in range(low, high):
        had += taken != OPEN and owner[run] == taken
        if owner[run] == OPEN:
            for row in range(first[run], first[run + 1]):
                if names[row] >= 0 and names[row] != work[LABEL, run]:
                    work[NAMED, names[row]] = named
    _begin(low, high, state)
    # A node that is not named by any other is a root; then, of those that only name each other, the first one.
    for only_unnamed in (True, False):
        for run in range(low, high):
            if owner[run] == OPEN and not (only_unnamed and work[NAMED, work[LABEL, run]] == named):
                top = _own_label(work[LABEL, run], run, high, taken, 0, first, state, work, owner)
                _reach(run, high, taken, top, names, first, state, work, owner)
    for run in range(low, high):
        had -= taken != OPEN and owner[run] == taken
    return had


@jit_flat
def _search_again(root, low, high, names, first, state, work, owner):
    """Search the nodes of an IRI among those that are open now; its own runs are from `root` on."""
    _begin(low, high, state)
    for run in range(root, high):
        if work[LABEL, run] < 0:
            _take_run(run, root, high, names, first, state, work, owner)


@jit_flat
def _give_back(root, low, high, work, owner):
    """Open again the runs that an IRI owns among low … high - 1, except for its own."""
    for run in range(low, high):
        if owner[run] == root and work[LABEL, run] >= 0:
            owner[run] = OPEN


@jit_flat
def _close(root, low, high, names, first, state, work, owner):
    """Settle the element of an IRI whose first run is `root`, and all before it. `high`: the run after its last gap."""
    if _settle_blanks(low, root, root, names, first, state, work, owner) > 0:
        # Nodes that it reached only through a node that it has lost are not its own either.
        _give_back(root, low, high, work, owner)
        _search_again(root, low, high, names, first, state, work, owner)
        _settle_blanks(low, root, OPEN, names, first, state, work, owner)
    last = high - 1
    while work[LABEL, last] >= 0:
        last -= 1
    _settle_blanks(root, last, OPEN, names, first, state, work, owner)


@jit_flat
def _close_all(root, low, high, names, first, state, work, owner):
    """Settle an IRI's runs from `root` on, as one element or, if it is divided, as several. Returns the first run of
    the last one."""
    last, divided = root, False
    for run in range(root + 1, high):
        work[DIVIDED, run] = 0
        if work[LABEL, run] < 0:
            last = run
    behind = last
    for run in range(last - 1, root, -1):
        if work[LABEL, run] < 0:
            behind = run
        elif owner[run] == OPEN:
            work[DIVIDED, behind] = 1
            divided = True
    if not divided:
        _close(root, low, high, names, first, state, work, owner)
        return root
    _give_back(root, low, high, work, owner)
    for run in range(root + 1, last + 1):
        if work[DIVIDED, run] == 1:
            _search_again(root, low, run, names, first, state, work, owner)
            _close(root, low, run, names, first, state, work, owner)
            low, root = root, run
    _search_again(root, low, high, names, first, state, work, owner)
    _close(root, low, high, names, first, state, work, owner)
    return root


@jit_flat
def _settle_first(low, high, names, first, state, work, owner):
    """Settle the first elements of blank nodes among low … high - 1 that end in the first half of the waiting triples.

    Returns how many triples keep waiting.
    """
    waiting = np.int64(0)
    for run in range(low, high):
        work[WAITED, run] = 0
        if owner[run] == OPEN:
            waiting += first[run + 1] - first[run]
            work[WAITED, run] = waiting
    _settle_blanks(low, high, OPEN, names, first, state, work, owner)
    for run in range(low, high):
        if work[WAITED, run] > 0:
            work[ENDS, owner[run]] = run
    kept, settled = high, np.int64(0)
    for run in range(low, high):
        if work[WAITED, run] > 0 and owner[run] == run and work[WAITED, work[ENDS, run]] > waiting // 2:
            kept = run
            break
    for run in range(low, high):
        if work[WAITED, run] > 0:
            if owner[run] >= kept:
                owner[run] = OPEN
            else:
                settled += first[run + 1] - first[run]
    # Runs that are settled later come after these, wherever their roots are then.
    state[TURNS] += 1
    for run in range(high):
        if owner[run] != OPEN and work[TURN, run] == 0:
            work[TURN, run] = state[TURNS] - _NO_TURN
    return waiting - settled


@jit_flat
def settle(rows, first, following, ended, lookahead, names, state, work, owner):
    """owner[r]: the run at which the element of run r begins; OPEN if that depends on later runs.

    `following`: the subject of the next run, which is not complete, or 0. `ended`: no run will follow. `names`, `work`
    are those of `number_labels`; state[LIMIT] is kept from call to call, 0 at first; `owner` is OPEN everywhere.
    """
    runs = len(first) - 1
    root, low = np.int64(OPEN), np.int64(0)
    state[LIMIT] = max(state[LIMIT], lookahead)
    limit = state[LIMIT]
    state[MARK] = state[TURNS] = 0
    _begin(0, OPEN, state)
    for run in range(runs):
        label = work[LABEL, run]
        if root != OPEN and label < 0 and rows[0, first[run]] != rows[0, first[root]]:
            low = _close_all(root, low, run, names, first, state, work, owner)
            state[LIMIT] = lookahead
            root = np.int64(OPEN)
        if label < 0 and root == OPEN:
            root, limit = np.int64(run), lookahead
            _begin(low, root, state)
        state[GAP_ROWS] += first[run + 1] - first[run]
        if label < 0 or (root != OPEN and work[NAMED, label] == state[MARK]):
            _take_run(run, root, run + 1, names, first, state, work, owner)
        elif state[GAP_ROWS] >= limit:
            if root != OPEN:
                low = _close_all(root, low, run + 1, names, first, state, work, owner)
                root = np.int64(OPEN)
            waiting = _settle_first(low, run + 1, names, first, state, work, owner)
            limit = state[LIMIT] = max(lookahead, 2 * waiting)
            _begin(low, OPEN, state)
            state[GAP_ROWS] = waiting
    another = following != 0 and tag_of(following) != TAG_BLANK
    if root != OPEN and (ended or (another and following != rows[0, first[root]])):
        low = _close_all(root, low, runs, names, first, state, work, owner)
        state[LIMIT] = lookahead
        root = np.int64(OPEN)
    if ended:
        _settle_blanks(low, runs, OPEN, names, first, state, work, owner)
    for run in range(low, runs):
        if root != OPEN and owner[run] == root:
            owner[run] = OPEN


@jit_flat
def settle_times(rows, first, time, owner, conflict, times):
    """The ids of times that each root states itself -> times[0], and that its nodes state -> times[1]; `conflict`: two
    different ones.

    `time`: the time that each run states, 0: none. `times` (2, runs) is 0 everywhere.
    """
    for run in range(len(owner)):
        root = owner[run]
        if root == OPEN or time[run] == 0:
            continue
        by = 0 if rows[0, first[run]] == rows[0, first[root]] else 1
        if times[by, root] == 0:
            times[by, root] = time[run]
        elif times[by, root] != time[run]:
            times[by, root] = conflict


@jit_inline
def _rescoped(identifier, scope):
    hashed = mix64(np.uint64(identifier) ^ mix64(np.uint64(scope)))
    return tagged(np.int64(TAG_BLANK), np.int64(hashed & _BLANK_MASK))


@jit_flat
def rescope(rows, first, scope):
    """Give the blank nodes of element e, rows first[e] to first[e + 1] - 1, the scope `scope` + e. `rows` (4, n)
    includes graphs."""
    for e in range(len(first) - 1):
        for row in range(first[e], first[e + 1]):
            for k in range(4):
                if tag_of(rows[k, row]) == TAG_BLANK:
                    rows[k, row] = _rescoped(rows[k, row], scope + e)
