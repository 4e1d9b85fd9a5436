"""The dictionary's hash table id -> text, and the encoding of terms.

`table` has open addressing with three words an entry: id (0: empty), offset and length of the canonical N-Triples text
in `arena`. The low bits of an id are hash bits already, so they are the home slot. `meta`: the number of entries, the
top of the arena.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.values.inline import inline_id, tag_of, tagged, write_inline
from cqels_py.kernels.values.iris import are_letters, is_iri
from cqels_py.kernels.values.languages import is_tag
from cqels_py.kernels.values.murmur import mix64, murmur64
from cqels_py.kernels.values.syntax import CANONICAL, LESS, NO_QUOTE, term_end
from cqels_py.kernels.values.words import copy, same
from cqels_py.terms.layout import TAG_BLANK, TAG_IRI, TAG_LITERAL, TAG_OVERFLOW

ENTRIES, TOP = 0, 1
WORDS = 3

# Why `encode` stopped; NOT_WRITTEN_SO: the text is not the canonical form of a term, or an IRI or a language tag in it is none.
DONE, TABLE_FULL, ARENA_FULL, NOT_WRITTEN_SO, COLLISION = range(5)
UNKNOWN = np.int64(-1)

UNCHECKED = -2
"""Instead of the position of a closing quote: a term that exists already, whose IRI or tag may be one of an earlier version."""

_STRING = np.frombuffer(b"^^<http://www.w3.org/2001/XMLSchema#string>", np.uint8).copy()
_XSD = len(b"^^<http://www.w3.org/2001/XMLSchema#")
_BLANK_MASK = np.uint64((1 << 60) - 1)
_GREATER = 62


@jit_inline
def is_hashed(identifier):
    """Is the term's text in the dictionary?"""
    tag = tag_of(identifier)
    return tag == TAG_IRI or tag == TAG_LITERAL or tag == TAG_OVERFLOW


@jit_inline
def place_of(table, identifier):
    """The position of an id's entry, or of the free slot where it would be."""
    mask = np.int64(len(table) // WORDS - 1)
    position = identifier & mask
    while True:
        at = position * WORDS
        if table[at] == identifier or table[at] == 0:
            return at
        position = (position + 1) & mask


@jit_flat
def blank_id(data, start, end, scope):
    """A blank node's id: the hash of its label (without "_:") and its scope."""
    hashed = mix64(murmur64(data, start, end) ^ mix64(np.uint64(scope)))
    return tagged(np.int64(TAG_BLANK), np.int64(hashed & _BLANK_MASK))


@jit_inline
def _is_none(data, start, end, quote):
    """Is the IRI of a term, or a literal's datatype or language tag, not one?"""
    if data[end - 1] != _GREATER:
        # Of two letters, a tag is a language.
        tag = quote + 2
        return quote != NO_QUOTE and end > tag and end != tag + 2 and not is_tag(data, tag, end)
    if quote == NO_QUOTE:
        return not is_iri(data, start, end)
    name = quote + 1 + _XSD
    if name < end and same(data, quote + 1, _STRING, 0, _XSD) and are_letters(data, name, end - 1):
        return False
    return not is_iri(data, quote + 3, end)


@jit_flat
def intern(data, start, end, quote, tag, shift, table, arena, meta):
    """(id, status) of a canonical text, which is found in the table, or inserted if its IRI or language tag is one. `quote`: as of
    `encode_term`, or UNCHECKED. `shift`: 4, or more for fewer hash bits."""
    identifier = tagged(np.int64(tag), np.int64(murmur64(data, start, end) >> np.uint64(shift)))
    at = place_of(table, identifier)
    length = end - start
    if table[at] == identifier:
        if table[at + 2] == length and same(data, start, arena, table[at + 1], length):
            return identifier, DONE
        return identifier, COLLISION
    # Terms that are known have been checked.
    if quote != UNCHECKED and _is_none(data, start, end, quote):
        return identifier, NOT_WRITTEN_SO
    if (meta[ENTRIES] + 1) * WORDS * 5 > len(table) * 3:
        return identifier, TABLE_FULL
    if meta[TOP] + length > len(arena):
        return identifier, ARENA_FULL
    table[at] = identifier
    table[at + 1] = meta[TOP]
    table[at + 2] = length
    meta[TOP] = copy(data, start, end, arena, meta[TOP])
    meta[ENTRIES] += 1
    return identifier, DONE


@jit_inline
def encode_term(data, start, end, quote, scope, shift, table, arena, meta):
    """(id, status) of the term data[start:end] in canonical form. `quote`: the position of its closing quote if it is a
    literal."""
    tag = TAG_IRI
    if data[start] != LESS:
        if quote == NO_QUOTE:
            return blank_id(data, start + 2, end, scope), DONE
        tag = TAG_LITERAL
        if end - quote - 1 == len(_STRING) and same(data, quote + 1, _STRING, 0, len(_STRING)):
            end = quote + 1
        elif data[end - 1] == _GREATER:
            identifier = inline_id(data, start, quote, end)
            if identifier != 0:
                return identifier, DONE
    return intern(data, start, end, quote, tag, shift, table, arena, meta)


@jit_flat
def encode(data, offsets, scopes, at, shift, table, arena, meta, out):
    """Encode terms from number `at` on: term i is data[offsets[i]:offsets[i + 1]], empty for unbound. Returns (at,
    status)."""
    for i in range(at, len(offsets) - 1):
        start, end = offsets[i], offsets[i + 1]
        if start == end:
            out[i] = 0
            continue
        stop, quote, written = term_end(data, start, end)
        if written != CANONICAL or stop != end:
            return i, NOT_WRITTEN_SO
        identifier, status = encode_term(data, start, end, quote, scopes[i], shift, table, arena, meta)
        out[i] = identifier
        if status != DONE:
            return i, status
    return len(offsets) - 1, DONE


@jit_flat
def enter(identifier, data, table, arena, meta):
    """Insert the canonical text `data` under a given id. Returns a status."""
    at = place_of(table, identifier)
    if (meta[ENTRIES] + 1) * WORDS * 5 > len(table) * 3:
        return TABLE_FULL
    if meta[TOP] + len(data) > len(arena):
        return ARENA_FULL
    table[at] = identifier
    table[at + 1] = meta[TOP]
    table[at + 2] = len(data)
    meta[TOP] = copy(data, 0, len(data), arena, meta[TOP])
    meta[ENTRIES] += 1
    return DONE


@jit_flat
def rehash(old, table):
    """Insert all entries of `old` into a larger, empty table."""
    for at in range(0, len(old), WORDS):
        if old[at] != 0:
            place = place_of(table, old[at])
            for w in range(WORDS):
                table[place + w] = old[at + w]


@jit_flat
def keep(ids, old, old_arena, table, arena, meta):
    """Copy the entries of `ids` to another table and arena that have room for them. Ids that are not hashed are
    ignored."""
    for i in range(len(ids)):
        identifier = ids[i]
        if not is_hashed(identifier):
            continue
        place = place_of(table, identifier)
        if table[place] != 0:
            continue
        at = place_of(old, identifier)
        if old[at] == 0:
            # Not an id of this dictionary: the cell holds something else.
            continue
        table[place] = identifier
        table[place + 1] = meta[TOP]
        table[place + 2] = old[at + 2]
        meta[TOP] = copy(old_arena, old[at + 1], old[at + 1] + old[at + 2], arena, meta[TOP])
        meta[ENTRIES] += 1


@jit_inline
def _room_for_inline(identifier):
    """An upper bound of the bytes of the text of an id that is not hashed."""
    if tag_of(identifier) == TAG_BLANK:
        return np.int64(18)
    return np.int64(0) if identifier == 0 else np.int64(96)


@jit_flat
def room_for_texts(ids, table):
    """An upper bound of the bytes of the texts of ids; UNKNOWN if one is not in the table."""
    room = np.int64(0)
    for i in range(len(ids)):
        if is_hashed(ids[i]):
            at = place_of(table, ids[i])
            if table[at] == 0:
                return UNKNOWN
            room += table[at + 2]
        else:
            room += _room_for_inline(ids[i])
    return room


@jit_inline
def write_blank(identifier, out, at):
    """Write the 18 N-Triples bytes of a blank node from out[at] on. Returns the position after them."""
    out[at] = 95
    out[at + 1] = 58
    out[at + 2] = 98
    for k in range(15):
        digit = (identifier >> (56 - 4 * k)) & 15
        out[at + 3 + k] = 48 + digit if digit < 10 else 87 + digit
    return at + 18


@jit_inline
def _write_unhashed(identifier, out, at):
    """Write the text of an id that is not hashed from out[at] on; nothing for 0. Returns the position after it."""
    if tag_of(identifier) == TAG_BLANK:
        return write_blank(identifier, out, at)
    return at if identifier == 0 else write_inline(identifier, out, at)


@jit_flat
def decode(ids, table, arena, out, offsets):
    """Write the N-Triples texts of ids one after another; text i is out[offsets[i]:offsets[i + 1]]."""
    top = np.int64(0)
    for i in range(len(ids)):
        offsets[i] = top
        identifier = ids[i]
        if is_hashed(identifier):
            at = place_of(table, identifier)
            top = copy(arena, table[at + 1], table[at + 1] + table[at + 2], out, top)
        else:
            top = _write_unhashed(identifier, out, top)
    offsets[len(ids)] = top


@jit_flat
def find_texts(ids, table, places):
    """The entries of ids (n) in the table, to `places` (n). Returns an upper bound of the bytes of the texts, or UNKNOWN."""
    room = np.int64(0)
    for i in range(len(ids)):
        if is_hashed(ids[i]):
            at = place_of(table, ids[i])
            if table[at] == 0:
                return UNKNOWN
            places[i] = at
            room += table[at + 2]
        else:
            room += _room_for_inline(ids[i])
    return room


@jit_flat
def write_texts(ids, places, table, arena, lengths, out):
    """Write the N-Triples texts of ids (n), whose `places` (n) `find_texts` has found, one after another to `out`, which has room
    for them, and the length of each to `lengths` (n). Returns the bytes of all.
    """
    top = np.int64(0)
    for i in range(len(ids)):
        before = top
        identifier = ids[i]
        if is_hashed(identifier):
            at = places[i]
            top = copy(arena, table[at + 1], table[at + 1] + table[at + 2], out, top)
        else:
            top = _write_unhashed(identifier, out, top)
        lengths[i] = top - before
    return top
