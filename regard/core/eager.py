"""Eager execution of code that `torch.compile` has compiled."""

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch


def force_eager() -> AbstractContextManager[Any]:
    """Return a context in which compiled functions run their original code."""
    # The compiler is imported when something is compiled first; until then there is nothing to do,
    # and its import would take a second.
    if "torch._dynamo" not in sys.modules:
        return nullcontext()
    stance: AbstractContextManager[Any] = torch.compiler.set_stance("force_eager")
    return stance
