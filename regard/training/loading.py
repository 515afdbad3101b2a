"""Loading of models: their size is compared with the weight file before memory is allocated."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from regard.core.checksums import check_file
from regard.core.errors import CheckpointError
from regard.core.tensor_files import open_tensors
from regard.training.checkpoint import FORMAT_VERSION, check_weights

Model = TypeVar("Model", bound=nn.Module)

CALLS_PER_TENSOR = 200
"""Calls of torch that a model of the package needs per weight tensor, ten times as many as any."""

MIN_CALLS = 20_000
"""Calls of torch that every model may need."""


class _Draft(TorchFunctionMode):
    """Calls of torch in this thread while a draft is built: limited in number, without values.

    The limit ends loops that would go on for hours. Functions that set values in place, such as
    initialisations, are skipped: a draft has none, and on the `meta` device they would import a
    thousand modules.
    """

    def __init__(self, num_tensors: int, origin: str) -> None:
        super().__init__()
        self._calls = MIN_CALLS + CALLS_PER_TENSOR * num_tensors
        self._origin = origin
        self._num_tensors = num_tensors

    def __torch_function__(  # noqa: PLR0917  (the signature is torch's)
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Count a call of torch, and make it unless it only sets values."""
        self._calls -= 1
        if self._calls < 0:
            raise CheckpointError(
                f"{self._origin} does not fit the model, which has far more weights than the "
                f"{self._num_tensors:,} in it. Build the model with the settings it was trained "
                "with."
            )
        given = kwargs or {}
        name = getattr(func, "__name__", "")
        if name.endswith("_") and not name.endswith("__") and name != "requires_grad_":
            return args[0] if args else given["tensor"]
        return func(*args, **given)


def draft_model(build: Callable[[], Model], *, num_tensors: int, origin: str) -> Model:
    """Build a model without memory for its weights: on the `meta` device, which has shapes only.

    Args:
        build: Builds the model.
        num_tensors: Number of weight tensors that the model may have, roughly.
        origin: Name of the weights in messages.
    """
    try:
        with torch.device("meta"), _Draft(num_tensors, origin):
            return build()
    except (RuntimeError, OverflowError, MemoryError) as error:
        first, *_ = str(error).splitlines() or [type(error).__name__]
        raise CheckpointError(
            f"{origin} does not fit the model, which cannot be built with these settings: {first} "
            "Build the model with the settings it was trained with."
        ) from None


def check_model(build: Callable[[], nn.Module], path: Path) -> None:
    """Raise `CheckpointError` if the weights in a file do not fit a model; allocate neither."""
    with open_tensors(path, max_version=FORMAT_VERSION) as file:
        stored = file.drafts()
    draft = draft_model(build, num_tensors=len(stored), origin=str(path))
    check_weights(draft, stored, str(path))


def load_model(build: Callable[[], Model], path: Path) -> Model:
    """Build a model with the weights in a file, on the CPU.

    The weights are never initialised: the model is built without memory, and its tensors are
    replaced by those of the file, if all names and shapes are equal.

    Args:
        build: Builds the model.
        path: The weights.
    """
    check_file(path)
    with open_tensors(path, max_version=FORMAT_VERSION) as file:
        stored = file.drafts()
        model = draft_model(build, num_tensors=len(stored), origin=str(path))
        check_weights(model, stored, str(path))
        drafts = model.state_dict(keep_vars=True)
        loaded: dict[int, Tensor] = {}  # by the identity of the draft, since names may be tied
        for name in stored:
            draft = drafts[name]
            # `torch.empty_like` of a draft would import a thousand modules.
            tensor = torch.empty(draft.shape, dtype=draft.dtype)
            tensor.copy_(file.read(name))
            is_trained = isinstance(draft, nn.Parameter)
            loaded[id(draft)] = nn.Parameter(tensor, draft.requires_grad) if is_trained else tensor
    for module in model.modules():
        for name, old in [*module._parameters.items(), *module._buffers.items()]:
            if id(old) in loaded:
                setattr(module, name, loaded[id(old)])
    return model
