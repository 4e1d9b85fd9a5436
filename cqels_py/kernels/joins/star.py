"""The n-ary join where all inputs share one variable and nothing else: a star, the shape of observations.

Every port is probed by the same key, whose entry has the rings of all ports (structures/ring_index.py): one lookup per
row.

Rows are processed in chunks, and each chunk in passes, so that many lookups are in flight at once: find the entries,
apply the rows and record the products they make, and write the products. A product is that of the other ports' rings,
whose slots or ids are copied, as later rows change the rings. Small products are laid out together as leaves, port by
port, and written by columns. Large ones are written one by one: a leaf's ids are repeated for each combination of the
leaves of the inner levels, and the output of a level is copied for each combination of the outer ones.

Records of products (LOCATED_ROWS * (n + 4)): the row, the end of its slots in `partners`, the number of its results, a bit for
each port of which there are ids instead, at the same positions of `partner_ids`, and the number of partners in each
port; the row's own port has one, its own slot. `leaves` (n * LAID_OUT), by port: the positions in the cells of the
leaves of small products' results.

Ports are FIFO. The state is that of `multiway.step`. A chunk that was stopped is continued when `step` is called again:
applying rows from cursor[ROW] on if cursor[NEXT] is 0, or writing product cursor[NEXT] - 1 from result
cursor[DELIVERED] on.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.joins.multiway import LAID_OUT, write_columns, write_signs
from cqels_py.kernels.joins.state import open_products, open_results
from cqels_py.kernels.primitives.prefetch import prefetch
from cqels_py.kernels.primitives.simd_copy import VECTOR_LENGTH, copy_vector, fill_vector
from cqels_py.kernels.structures.ring_index import (
    AT,
    BASE,
    DEPTH,
    DONE,
    LOCATED,
    LOCATED_ROWS,
    NEAR_CELLS,
    NOTED,
    OUT,
    OUT_FULL,
    PARTNERS_FULL,
    PHASE,
    PORT_FIELDS,
    ROW,
    TABLE_FULL,
    WIDTH,
    end_of_run,
    find_entries,
    holds_ids,
    leaves_in,
    open_ring,
    pop,
    prefetch_rings_of,
    push_leaf,
    slot_in,
    word_of,
)
from cqels_py.kernels.structures.ring_record import InputRows, open_rings

NEXT, DELIVERED = AT, DEPTH
IDS_FROM = 6
"""log2 of the capacity from which rings hold ids. With a lower one, keys that had more leaves only once would take
twice the memory, and their small products would be written one by one."""
PRODUCT_ROW, PRODUCT_END, PRODUCT_RESULTS, PRODUCT_OF_IDS, PRODUCT_COUNTS = range(5)
FEW = VECTOR_LENGTH
"""A product of more results than these is written by itself."""
_AT_LEAST = np.int64(2)
"""The least partners copied, and results laid out, even if there are fewer: their number is unpredictable, and a loop
that usually ends there costs no more than one that ends sooner. More partners are copied in whole SIMD vectors, as
there is always room for one after them."""
# Phases of a row.
NEW, JOINING, ENTERING = range(3)
# Levels of a product that is written by itself, outermost first: the port, where its partners begin and how many there are, and
# how many results each has.
L_PORT, L_FIRST, L_COUNT, L_EACH = range(4)
LEVEL_FIELDS = 4
_LOCATED = np.uint64(LOCATED_ROWS)


@jit_inline
def _ring(at, p):
    """The word of port p's ring: a star's ports have one index each, in the order of ports."""
    return at + 1 + p


@jit_flat
def _note_ids(first, mask, oldest, count, ring_ids, to, partner_ids):
    """Copy the ids of a ring, oldest first, to `partner_ids` from `to` on."""
    straight = min(count, mask + 1 - oldest)
    for i in range(straight):
        partner_ids[to + i] = ring_ids[first + oldest + i]
    for i in range(count - straight):
        partner_ids[to + straight + i] = ring_ids[first + i]


@jit_flat
def _note_with_ids(p, slot, at, n, record, to, state):
    """Copy the partners of a product where some ring holds ids: these, or their slots."""
    arrays, products = open_rings(state), open_products(state)
    records, partners = products.records, products.partners
    for q in range(n):
        word = arrays.tables[_ring(at, q)]
        first, mask, oldest, count = open_ring(word)
        if q == p:
            partners[to] = slot
            count = np.int64(1)
        elif holds_ids(word):
            records[record + PRODUCT_OF_IDS] |= np.int64(1) << q
            _note_ids(first, mask, oldest, count, arrays.ring_ids, to, products.partner_ids)
        else:
            for i in range(count):
                partners[to + i] = slot_in(first, mask, (oldest + i) & mask, arrays.rings)
        records[record + PRODUCT_COUNTS + q] = count
        to += count


@jit_inline
def _word_for(p, mine, q, at, tables):
    """The word of port q's ring, or `mine` for the row's own port p. Without a branch: the port of a row is
    unpredictable."""
    word = tables[_ring(at, q)]
    return mine if q == p else word


@jit_inline
def _note_slots(word, to, rings, partners):
    """Copy the slots of a ring, oldest first, to `partners` from `to` on."""
    first, mask, oldest, count = open_ring(word)
    if count <= _AT_LEAST:
        for i in range(_AT_LEAST):
            partners[to + i] = slot_in(first, mask, (oldest + i) & mask, rings)
        return
    for i in range(0, count, VECTOR_LENGTH):
        copy_vector(partners, np.uint64(to + i), rings, np.uint64(first), np.uint64(oldest + i), np.uint64(mask))


@jit_inline
def _note_product(row, p, slot, at, n, far, arrays, products):
    """Record the product of a row of port p, if it is not empty; False if there is no room for its slots and ids."""
    ports, tables, cursor = arrays.ports, arrays.tables, arrays.cursor
    records, partners = products.records, products.partners
    # A row's own slot has the form of a ring that never had two leaves.
    mine, many, results, words = word_of(np.int64(slot), 0, 1), np.int64(0), np.int64(1), np.int64(0)
    for q in range(n):
        word = _word_for(p, mine, q, at, tables)
        results *= leaves_in(word)
        many += leaves_in(word)
        words |= word
    if results == 0:
        return True
    # The last of many partners would be evicted from the cache before they are written.
    soon = far and results <= FEW
    noted = cursor[NOTED]
    record = noted * (n + PRODUCT_COUNTS)
    to = records[record - (n + PRODUCT_COUNTS) + PRODUCT_END] if noted > 0 else np.int64(0)
    if to + many + VECTOR_LENGTH > len(partners):
        return False
    records[record + PRODUCT_ROW] = row
    records[record + PRODUCT_END] = to + many
    records[record + PRODUCT_RESULTS] = results
    records[record + PRODUCT_OF_IDS] = 0
    cursor[NOTED] = noted + 1
    if holds_ids(words):
        _note_with_ids(p, slot, at, n, record, to, arrays.state)
        return True
    for q in range(n):
        word = _word_for(p, mine, q, at, tables)
        _note_slots(word, to, arrays.rings, partners)
        count = leaves_in(word)
        if soon:
            base, width = ports[q * PORT_FIELDS + BASE], ports[q * PORT_FIELDS + WIDTH]
            for i in range(count):
                prefetch(arrays.cells, base + np.int64(partners[to + i]) * width)
        records[record + PRODUCT_COUNTS + q] = count
        to += count
    return True


@jit_flat
def _apply_rows(n, rows, state, retract):
    """Apply rows whose entries are known from cursor[ROW] on, and record their products. Returns DONE, or why it stopped."""
    arrays, products = open_rings(state), open_products(state)
    cursor, far = arrays.cursor, len(arrays.cells) > NEAR_CELLS
    phase = cursor[PHASE]
    for row in range(cursor[ROW], cursor[LOCATED]):
        here = np.uint64(row)
        p, slot, sign = np.int64(rows.port[here]), rows.slot[here], rows.sign[here]
        at, status = arrays.located[here % _LOCATED], np.int64(DONE)
        if sign < 0 and phase == NEW:
            pop(_ring(at, p), arrays.tables)
            phase = np.int64(JOINING)
        if phase != ENTERING and (sign > 0 or retract):
            if not _note_product(row, p, slot, at, n, far, arrays, products):
                status = np.int64(PARTNERS_FULL)
        if sign > 0 and status == DONE:
            phase = np.int64(ENTERING)
            status = push_leaf(_ring(at, p), slot, p, p * PORT_FIELDS, arrays)
        if status != DONE:
            cursor[ROW], cursor[PHASE] = row, phase
            return status
        phase = np.int64(NEW)
    cursor[ROW], cursor[PHASE] = cursor[LOCATED], NEW
    return DONE


@jit_inline
def _lay_out(record, results, done, n, ports, products):
    """Lay out the leaves of a small product, after those of `done` results."""
    records, partners, leaves = products.records, products.partners, products.leaves
    end, each = records[record + PRODUCT_END], np.int64(1)
    for q in range(n - 1, -1, -1):
        base, width = ports[q * PORT_FIELDS + BASE], ports[q * PORT_FIELDS + WIDTH]
        count = records[record + PRODUCT_COUNTS + q]
        first, to = end - count, q * LAID_OUT + done
        place, left = first, each
        # No branch except for the loop's: the number of partners is unpredictable.
        for i in range(max(results, _AT_LEAST)):
            leaves[to + i] = base + np.int64(partners[place]) * width
            left -= 1
            is_next = left == 0
            place += np.int64(is_next)
            left = each if is_next else left
            place = first if place == end else place
        end = first
        each *= count


@jit_inline
def _lay_out_of_two(p, record, done, ports, products):
    """`_lay_out` for two ports and a row of port p: a SIMD vector of its own leaf, and one of the other port's leaves."""
    partners, leaves = products.partners, products.leaves
    other, count = 1 - p, products.records[record + PRODUCT_RESULTS]
    first = products.records[record + PRODUCT_END] - count - 1
    slot = np.int64(partners[first + p * count])
    leaf = ports[p * PORT_FIELDS + BASE] + slot * ports[p * PORT_FIELDS + WIDTH]
    fill_vector(leaves, np.uint64(p * LAID_OUT + done), leaf)
    base, width = ports[other * PORT_FIELDS + BASE], ports[other * PORT_FIELDS + WIDTH]
    to, place = np.uint64(other * LAID_OUT + done), np.uint64(first + other)
    for i in range(np.uint64(VECTOR_LENGTH)):
        leaves[to + i] = base + np.int64(partners[place + i]) * width


@jit_inline
def _lay_levels(record, n, records, levels):
    """The levels of a product that is written by itself. Of a large one the shortest is outermost, so that the copied runs are long;
    a small one has the order of `_lay_out`, so that the order of results depends only on how many there are."""
    first, is_large = records[record + PRODUCT_END], records[record + PRODUCT_RESULTS] > FEW
    for q in range(n):
        first -= records[record + PRODUCT_COUNTS + q]
    for q in range(n):
        count = records[record + PRODUCT_COUNTS + q]
        to = q * LEVEL_FIELDS
        while is_large and to > 0 and levels[to - LEVEL_FIELDS + L_COUNT] > count:
            for field in range(L_COUNT + 1):
                levels[to + field] = levels[to - LEVEL_FIELDS + field]
            to -= LEVEL_FIELDS
        levels[to + L_PORT] = q
        levels[to + L_FIRST] = first
        levels[to + L_COUNT] = count
        first += count
    each = np.int64(1)
    for level in range(n - 1, -1, -1):
        levels[level * LEVEL_FIELDS + L_EACH] = each
        each *= levels[level * LEVEL_FIELDS + L_COUNT]


@jit_inline
def _write_level(begin, count, each, first, many, partner_ids, out_columns, start):
    """A column of a level's port: the ids of results `first` to `first` + `many` - 1 of a product.

    The level's ids, `count` from partner_ids[begin] on, are repeated for `each` results.
    """
    place, left, end = begin, each, begin + count
    if first > 0:
        place = begin + first // each % count
        left = each - first % each
    have = min(many, count * each)
    if each == 1:
        done = np.int64(0)
        while done < have:
            run = min(end - place, have - done)
            for j in range(run):
                out_columns[start + done + j] = partner_ids[place + j]
            done += run
            place = begin
    else:
        done = np.int64(0)
        while done < have:
            value = partner_ids[place]
            run = min(left, have - done)
            for j in range(run):
                out_columns[start + done + j] = value
            done += run
            left = each
            place = place + 1 if place + 1 < end else begin
    while have < many:
        more = min(have, many - have)
        for j in range(more):
            out_columns[start + have + j] = out_columns[start + j]
        have += more


@jit_inline
def _write_product(p, n, first, many, of_ids, arrays, products, results, made):
    """Write results `first` to `first` + `many` - 1 of a row of port p, to result number `made` and on."""
    ports, cells, levels = arrays.ports, arrays.cells, products.levels
    partners, partner_ids, own = products.partners, products.partner_ids, results.own
    columns, room = len(results.out_ports), np.int64(len(results.tick))
    for level in range(n):
        at = level * LEVEL_FIELDS
        q, begin, count, each = levels[at + L_PORT], levels[at + L_FIRST], levels[at + L_COUNT], levels[at + L_EACH]
        base, width = ports[q * PORT_FIELDS + BASE], ports[q * PORT_FIELDS + WIDTH]
        for c in range(columns):
            column = np.int64(own[q * columns + c])
            # The row's own columns are the same in all results.
            if column >= 0 and (q == p or own[p * columns + c] < 0):
                if not of_ids >> q & 1:
                    for i in range(begin, begin + count):
                        partner_ids[i] = cells[base + column + np.int64(partners[i]) * width]
                _write_level(begin, count, each, first, many, partner_ids, results.columns, c * room + made)


@jit_inline
def _prefetch_partners(record, n, arrays, products):
    """Prefetch the leaves of a large product."""
    ports, records = arrays.ports, products.records
    place = records[record + PRODUCT_END]
    for q in range(n - 1, -1, -1):
        base, width = ports[q * PORT_FIELDS + BASE], ports[q * PORT_FIELDS + WIDTH]
        count = records[record + PRODUCT_COUNTS + q]
        place -= count
        if records[record + PRODUCT_OF_IDS] >> q & 1:
            continue
        for i in range(count):
            prefetch(arrays.cells, base + np.int64(products.partners[place + i]) * width)


@jit_flat
def _deliver(n, rows, state, results):
    """Write the results of the recorded products. Returns DONE, or OUT_FULL."""
    arrays, products = open_rings(state), open_products(state)
    cursor, cells, records, leaves = arrays.cursor, arrays.cells, products.records, products.leaves
    out_ports, own, out_columns = results.out_ports, results.own, results.columns
    room, made, done = np.int64(len(results.tick)), cursor[OUT], np.int64(0)
    far = len(cells) > NEAR_CELLS
    product, noted, first = cursor[NEXT] - 1, cursor[NOTED], cursor[DELIVERED]
    status = np.int64(DONE)
    while product < noted and status == DONE:
        record = product * (n + PRODUCT_COUNTS)
        row, count = records[record + PRODUCT_ROW], records[record + PRODUCT_RESULTS]
        of_ids = records[record + PRODUCT_OF_IDS]
        small = count <= FEW and of_ids == 0 and first == 0 and made + done + VECTOR_LENGTH <= room
        if not small or done + VECTOR_LENGTH > LAID_OUT:
            write_columns(done, made, room, cells, leaves, out_ports, own, out_columns)
            made += done
            done = np.int64(0)
        if small:
            fill_vector(results.tick, np.uint64(made + done), rows.tick[row])
            fill_vector(results.sign, np.uint64(made + done), rows.sign[row])
            if n == 2:
                _lay_out_of_two(np.int64(rows.port[row]), record, done, arrays.ports, products)
            else:
                _lay_out(record, count, done, n, arrays.ports, products)
            done += count
            product += 1
            continue
        many = min(count - first, room - made)
        if far and first == 0 and product + 1 < noted:
            _prefetch_partners(record + n + PRODUCT_COUNTS, n, arrays, products)
        if many > 0:
            _lay_levels(record, n, records, products.levels)
            _write_product(np.int64(rows.port[row]), n, first, many, of_ids, arrays, products, results, made)
            write_signs(rows.tick[row], rows.sign[row], results, made, many)
            made += many
        if first + many < count:
            first += many
            status = np.int64(OUT_FULL)
        else:
            first = np.int64(0)
            product += 1
    write_columns(done, made, room, cells, leaves, out_ports, own, out_columns)
    cursor[OUT], cursor[NEXT], cursor[DELIVERED] = made + done, product + 1, first
    return status


@jit_flat
def step(row_port, row_slot, row_tick, row_sign, state, asked, out_columns, out_tick, out_sign, retract):
    """Process the rows from cursor[ROW] on; results go to out_* from cursor[OUT] on. Returns DONE or why it stopped.

    `state`, `asked`: see joins/state.py. `retract`: 1 if results are retracted, else 0.
    """
    rows, arrays = InputRows(row_port, row_slot, row_tick, row_sign), open_rings(state)
    results = open_results(asked, out_columns, out_tick, out_sign)
    cursor, n, end = arrays.cursor, np.int64(len(arrays.ports) // PORT_FIELDS), len(row_port)
    while cursor[ROW] < end or cursor[NOTED] > 0:
        if cursor[NEXT] == 0:
            row = cursor[ROW]
            if row >= cursor[LOCATED] and row < end:
                cursor[LOCATED] = find_entries(row, end_of_run(row, end), rows, state)
                if cursor[LOCATED] == row:
                    return TABLE_FULL
                if len(arrays.cells) > NEAR_CELLS:
                    prefetch_rings_of(row, cursor[LOCATED], rows, n + 1, state, retract)
            status = _apply_rows(n, rows, state, retract)
            if status != DONE and not (status == PARTNERS_FULL and cursor[NOTED] > 0):
                return status
            cursor[NEXT] = 1
        status = _deliver(n, rows, state, results)
        if status != DONE:
            return status
        cursor[NOTED], cursor[NEXT], cursor[DELIVERED] = 0, 0, 0
    return DONE
