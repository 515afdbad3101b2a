"""Export a run folder as a Hugging Face checkpoint, checked against `transformers`."""

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.core.errors import ExportError
from regard.core.files import replacing_folder, write_json
from regard.interop.huggingface.layout import Layout
from regard.interop.huggingface.load import LAYOUTS, check_free
from regard.interop.huggingface.weights import write_tensors
from regard.runs.folder import load, read_config
from regard.tasks.base import Task

TOLERANCE = 1e-3
"""How far apart two logits may be for a model to be the same."""


@dataclass(frozen=True)
class Exported:
    """What an export leaves behind."""

    folder: Path
    """The Hugging Face folder."""
    model_type: str
    """The layout that the run fits."""
    left_out: tuple[str, ...]
    """Parts of the run's model that the layout has no place for."""
    difference: float | None
    """Between our logits and those of `transformers`, at most; absent if it is not installed."""


def export_run(run: Path, out: Path, *, is_forced: bool = False) -> Exported:
    """Write a run as a folder that `transformers` opens, whole or not at all.

    Args:
        run: The run folder.
        out: The folder to write.
        is_forced: Whether what is already there may be replaced.
    """
    check_free(out, source=run, is_forced=is_forced)
    task = load(run, "cpu")
    layout = find_layout(task, str(read_config(run)["about"].get("model_type", "")))
    with replacing_folder(out) as part:
        config = layout.to_config(task)
        write_json(part / "config.json", config)
        write_tensors(part, layout.export_weights(task, config))
        layout.write_vocabularies(task, part)
        difference = compare(task, layout, part)
    left_out = [name for name, _ in task.model.named_children() if name not in layout.parts]
    return Exported(out, layout.model_type, tuple(left_out), difference)


def find_layout(task: Task[Any], preferred: str = "") -> Layout:
    """Return the layout that a task fits, or say what keeps it from fitting.

    Args:
        task: What is to be written.
        preferred: The layout that it was once read from; it comes first.
    """
    layouts = [layout for layout in LAYOUTS.values() if layout.task == task.recipe.task]
    layouts.sort(key=lambda layout: layout.model_type != preferred)
    if not layouts:
        known = sorted({layout.task for layout in LAYOUTS.values()})
        raise ExportError(
            f"Cannot export a run whose task is '{task.recipe.task}': only {' and '.join(known)} "
            "runs have a layout to be written in."
        )
    faults = {layout.model_type: layout.unsupported(task) for layout in layouts}
    for layout in layouts:
        if not faults[layout.model_type]:
            return layout
    name, first = next(iter(faults.items()))
    raise ExportError(f"Cannot export: the run does not fit '{name}': {'; '.join(first)}.")


def compare(task: Task[Any], layout: Layout, folder: Path) -> float | None:
    """Let `transformers` open a folder and answer the same; nothing if it is not installed."""
    try:
        transformers = importlib.import_module("transformers")
    except ImportError:
        return None
    logging = transformers.utils.logging
    verbosity, has_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        theirs = getattr(transformers, layout.architecture).from_pretrained(folder)
    finally:
        logging.set_verbosity(verbosity)
        if has_bar:
            logging.enable_progress_bar()
    difference = layout.difference(task, theirs.float().eval())
    if difference > TOLERANCE:
        raise ExportError(
            f"Cannot export: `transformers` {transformers.__version__} answers otherwise than the "
            f"run, by up to {difference:.2g}. Nothing was written."
        )
    return difference
