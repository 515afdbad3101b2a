"""State of an optimiser by parameter name, checked before it is loaded."""

import copy
from collections import defaultdict
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from regard.core.errors import CheckpointError
from regard.core.logging import logger
from regard.core.records import listed, shown_name
from regard.core.shapes import describe_shape

State = dict[str, dict[str, Tensor]]
"""Tensors of the optimiser, such as moving averages, by the name of their parameter."""


def read_state(model: nn.Module, optimizer: Optimizer) -> State:
    """Return the state of each parameter that has one; the tensors are not copied."""
    names: dict[Tensor, str] = {p: name for name, p in model.named_parameters()}
    return {
        names[parameter]: _tensors(values)
        for parameter, values in optimizer.state.items()
        if _tensors(values)
    }


def load_state(model: nn.Module, optimizer: Optimizer, saved: State, *, origin: str) -> None:
    """Load the state of the trained parameters, all or nothing.

    A parameter without saved state, such as one that was frozen before, starts without. State of
    another shape or type must not reach a fused optimiser, which accesses memory unchecked.

    Args:
        model: The model.
        optimizer: Optimiser of its trained parameters.
        saved: State by parameter name, as returned by `read_state`.
        origin: Source of the state, for the error message if it does not fit.
    """
    names = {parameter: name for name, parameter in model.named_parameters()}
    faults = [f"{shown_name(name)} is unexpected" for name in saved.keys() - {*names.values()}]
    loaded: dict[int, dict[str, Tensor]] = {}
    missing: list[str] = []
    for index, (group, parameter) in enumerate(_trained(optimizer)):
        name, expected = names[parameter], _expected_state(optimizer, group, parameter)
        values = saved.get(name, {})
        for key in expected.keys() & values.keys():
            faults += _misfits(f"{key} of {name}", values[key], expected=expected[key])
        if values.keys() >= expected.keys():
            loaded[index] = {key: values[key] for key in expected}
        else:
            missing.append(name)
            if parameter in optimizer.state:
                loaded[index] = optimizer.state[parameter]
    if faults:
        raise CheckpointError(
            f"{origin} does not fit the optimiser: {listed(sorted(faults))}. Resume with the "
            "model and the optimiser that the run was started with."
        )
    if missing and saved:  # before the first step, there is none
        logger.info(
            "Resuming without optimiser state for %s of %s parameters, which was not saved: %s.",
            f"{len(missing):,}",
            f"{len(_trained(optimizer)):,}",
            missing[0] if len(missing) == 1 else f"{missing[0]} …",
        )
    optimizer.load_state_dict({**optimizer.state_dict(), "state": loaded})


def name_state(model: nn.Module, optimizer: Optimizer, numbered: State, *, origin: str) -> State:
    """Convert state of an earlier version, by the number of the parameter, to state by name.

    Args:
        model: The model.
        optimizer: Optimiser with the same parameters in the same order.
        numbered: State by the number of the parameter in the optimiser.
        origin: Source of the state, for the error message if the numbers differ.
    """
    names = {parameter: name for name, parameter in model.named_parameters()}
    ordered = [names[parameter] for _, parameter in _trained(optimizer)]
    if numbered and numbered.keys() != {str(number) for number in range(len(ordered))}:
        raise CheckpointError(
            f"{origin} was saved by an earlier version, without names of parameters, and has state "
            f"of {len(numbered):,}, but {len(ordered):,} are trained. Resume with the "
            "`train.freeze` and `train.layer_decay` that the run was started with."
        )
    return {ordered[int(number)]: values for number, values in numbered.items()}


def _trained(optimizer: Optimizer) -> list[tuple[dict[str, Any], nn.Parameter]]:
    """Return the parameters of an optimiser, each with its group."""
    return [(group, p) for group in optimizer.param_groups for p in group["params"]]


def _expected_state(
    optimizer: Optimizer, group: dict[str, Any], parameter: nn.Parameter
) -> dict[str, Tensor]:
    """Return the state that a parameter has now, or tensors like those after its first step."""
    if values := _tensors(optimizer.state.get(parameter, {})):
        return values
    # One step of a copy, for a parameter with a single element: cheap and right for any optimiser.
    probe = nn.Parameter(parameter.new_zeros((1,) * parameter.dim()))
    probe.grad = torch.zeros_like(probe)
    other = copy.copy(optimizer)
    other.state, other.param_groups = defaultdict(dict), [{**group, "params": [probe]}]
    other.step()
    return {
        key: value.expand_as(parameter) if value.shape == probe.shape else value
        for key, value in _tensors(other.state[probe]).items()
    }


def _misfits(name: str, value: Tensor, *, expected: Tensor) -> list[str]:
    """Return how a tensor differs from the expected shape and type, or nothing."""
    if (value.shape, value.dtype) == (expected.shape, expected.dtype):
        return []
    found, needed = (
        f"{describe_shape(one)} of {str(one.dtype).removeprefix('torch.')}"
        for one in (value, expected)
    )
    return [f"{name} is {found} but must be {needed}"]


def _tensors(values: dict[str, Any]) -> dict[str, Tensor]:
    return {key: value for key, value in values.items() if isinstance(value, Tensor)}
