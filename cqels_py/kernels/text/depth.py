"""How deep the brackets of a text are nested: a finite automaton, whose table is that of a format, over its bytes."""

from __future__ import annotations

from cqels_py.kernels.compiler.jit import jit_flat

# What a byte does, beside the step to another state.
NOTHING, OPEN, CLOSE, OPEN_TRIPLE, CLOSE_TRIPLE, RESET, REFUSE = range(7)
ACTION_SHIFT = 8
"""A cell of the table is `next state | action << ACTION_SHIFT`; that of a state and a byte is at `state << 8 | byte`."""

# Cells of `state`, kept from chunk to chunk.
# UNCLOSED: how many <<( have no )>>, wherever they stand; RECENT: the last bytes.
STATE, BRACKETS, TRIPLES, UNCLOSED, RECENT = range(5)
STATE_CELLS = 5

_OPENING, _CLOSING = 0x3C3C28, 0x293E3E
_BYTES = 0xFFFFFF

_NEXT = (1 << ACTION_SHIFT) - 1


@jit_flat
def first_too_deep(text, table, state, most_brackets, most_triples, most_unclosed):
    """The position of the first byte that opens more brackets or triple terms than these, or that REFUSE is the action of;
    len(text) if there is none.

    What closes nothing is passed over, so that later brackets count in full. `most_unclosed`: where a reader goes on after an error
    texts may end elsewhere than the automaton believes.
    """
    at, brackets, triples = state[STATE], state[BRACKETS], state[TRIPLES]
    unclosed, recent = state[UNCLOSED], state[RECENT]
    place = len(text)
    for i in range(len(text)):
        cell = table[at << 8 | text[i]]
        at = cell & _NEXT
        recent = (recent << 8 | text[i]) & _BYTES
        if recent == _OPENING:
            unclosed += 1
            if unclosed > most_unclosed:
                place = i
                break
        elif recent == _CLOSING:
            unclosed = max(unclosed - 1, 0)
        action = cell >> ACTION_SHIFT
        if action != NOTHING:
            if action == OPEN:
                brackets += 1
            elif action == CLOSE:
                brackets = max(brackets - 1, 0)
            elif action == OPEN_TRIPLE:
                triples += 1
            elif action == CLOSE_TRIPLE:
                triples = max(triples - 1, 0)
            elif action == RESET:
                brackets = triples = 0
            if brackets > most_brackets or triples > most_triples or action == REFUSE:
                place = i
                break
    state[STATE], state[BRACKETS], state[TRIPLES] = at, brackets, triples
    state[UNCLOSED], state[RECENT] = unclosed, recent
    return place
