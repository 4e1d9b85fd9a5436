"""Plan to running operators: the only reader of the plan on the element's way."""

from cqels_py.dataflow.dataflow import Dataflow
from cqels_py.dataflow.explain import explain

__all__ = ["Dataflow", "explain"]
