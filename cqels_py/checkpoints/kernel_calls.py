"""The kernels that a log of elements calls."""

from __future__ import annotations

from cqels_py.kernels.compiler.manifest import KernelCall, manifest


def calls_to_log() -> list[KernelCall]:
    """The part of the manifest that writing a log needs."""
    return [call for call in manifest() if call.caller.startswith("cqels_py.checkpoints.")]
