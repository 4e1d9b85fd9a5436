"""Event automata for programs: parallelized complex event automata (PCEA) of Pinto & Riveros over streams of tuples.

>>> from cqels_py.automata import Automaton, Key, Predicate, Transition
>>> follows = Automaton(
...     [
...         Transition({}, Predicate("T"), {"o"}, "seen T"),
...         Transition({"seen T": ({"T": Key([0])}, {"R": Key([0])})}, Predicate("R"), {"o"}, "seen R"),
...     ],
...     final={"seen R"},
... )
>>> for position, matches in enumerate(follows.run([("T", 2), ("R", 1, 10), ("R", 2, 11)])):
...     print(position, matches)
0 []
1 []
2 [{'o': (0, 2)}]

`Automaton.from_query` translates hierarchical conjunctive queries (Theorem 4.1), `Automaton.from_json` reads an automaton. Queries
over RDF streams use `MATCH` instead, which compiles to automata of its own.
"""

from cqels_py.automata.automaton import Automaton, Key, Predicate, Transition
from cqels_py.automata.evaluation import Evaluation
from cqels_py.automata.q_tree import QTree, not_hierarchical, q_tree

__all__ = ["Automaton", "Evaluation", "Key", "Predicate", "QTree", "Transition", "not_hierarchical", "q_tree"]
