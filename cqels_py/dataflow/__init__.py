"""Plan to running operators: the only reader of the plan on the element's way."""

from cqels_py.dataflow.dataflow import Dataflow
from cqels_py.dataflow.explain import explain
from cqels_py.dataflow.profile import Profile, profile_of

__all__ = ["Dataflow", "Profile", "explain", "profile_of"]
