"""Export a run folder as a Hugging Face checkpoint, checked against `transformers`."""

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.core.errors import ExportError
from regard.core.files import replacing_folder, write_json
from regard.interop.huggingface.layout import Layout
from regard.interop.huggingface.load import LAYOUTS, check_output_folder
from regard.interop.huggingface.weights import write_tensors
from regard.runs.folder import load
from regard.runs.saved.config import read_config
from regard.tasks.base import Task

TOLERANCE = 1e-3
"""Maximum difference of logits between equal models."""


@dataclass(frozen=True)
class Exported:
    """Result of an export."""

    folder: Path
    """The Hugging Face folder."""
    model_type: str
    """`model_type` of the layout."""
    left_out: tuple[str, ...]
    """Parts of the run's model that the layout does not support."""
    difference: float | None
    """Maximum difference from the logits of `transformers`; None if it is not installed."""


def export_run(run: Path, out: Path, *, is_forced: bool = False) -> Exported:
    """Write a run atomically as a folder that `transformers` loads.

    Args:
        run: The run folder.
        out: The folder to write.
        is_forced: Whether an existing folder may be replaced.
    """
    check_output_folder(out, source=run, is_forced=is_forced)
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
    """Return the first layout that supports a task, or raise `ExportError` with the reasons.

    Args:
        task: Task to export.
        preferred: `model_type` of the checkpoint that the run was imported from; tried first.
    """
    layouts = [layout for layout in LAYOUTS.values() if layout.task == task.recipe.task]
    layouts.sort(key=lambda layout: layout.model_type != preferred)
    if not layouts:
        known = sorted({layout.task for layout in LAYOUTS.values()})
        raise ExportError(
            f"Cannot export a run whose task is '{task.recipe.task}': only runs of "
            f"{' and '.join(known)} can be exported."
        )
    faults = {layout.model_type: layout.unsupported(task) for layout in layouts}
    for layout in layouts:
        if not faults[layout.model_type]:
            return layout
    name, first = next(iter(faults.items()))
    raise ExportError(f"Cannot export: the run does not fit '{name}': {'; '.join(first)}.")


def compare(task: Task[Any], layout: Layout, folder: Path) -> float | None:
    """Check a folder against `transformers`; return None if it is not installed.

    Returns:
        The maximum absolute difference of the logits.
    """
    try:
        transformers = importlib.import_module("transformers")
    except ImportError:
        return None
    logging = transformers.utils.logging
    verbosity, has_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        reference = getattr(transformers, layout.architecture).from_pretrained(folder)
    finally:
        logging.set_verbosity(verbosity)
        if has_bar:
            logging.enable_progress_bar()
    difference = layout.max_difference(task, reference.float().eval())
    if difference > TOLERANCE:
        raise ExportError(
            f"Cannot export: logits of `transformers` {transformers.__version__} differ from those "
            f"of the run by up to {difference:.2g}. Nothing was written."
        )
    return difference
