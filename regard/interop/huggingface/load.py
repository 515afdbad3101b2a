"""Import a Hugging Face checkpoint as a run folder, and the table of layouts."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.core.checksums import add_checksums
from regard.core.config import read_toml, to_dict
from regard.core.errors import CheckpointError, ConfigError
from regard.core.files import read_json, read_record, replacing_folder, write_json
from regard.core.records import shown
from regard.core.tables import one_of, pick
from regard.interop.huggingface.bert import BertLayout
from regard.interop.huggingface.layout import Layout
from regard.interop.huggingface.marian import MarianLayout
from regard.interop.huggingface.vit import VitLayout
from regard.interop.huggingface.weights import match_weights, read_tensors
from regard.runs.folder import WEIGHTS
from regard.runs.provenance import describe_provenance
from regard.runs.saved.config import CONFIG, FORMAT
from regard.tasks.table import task_class, to_recipe
from regard.training.checkpoint import put_weights, save_weights
from regard.training.loading import draft_model

_KINDS = {"bert": BertLayout, "marian": MarianLayout, "vit": VitLayout}


def _read_layouts() -> dict[str, Layout]:
    tables = read_toml(Path(__file__).with_name("layouts.toml"))
    layouts: dict[str, Layout] = {}
    for name, table in tables.items():
        base = table.pop("base", name)
        layouts[name] = _KINDS[base](model_type=name, **{**tables[base], **table})
    return layouts


LAYOUTS = _read_layouts()
"""Layouts by `model_type` of `config.json`."""


@dataclass(frozen=True)
class Imported:
    """Result of an import."""

    folder: Path
    """The run folder."""
    task: Any
    """The `Task` with the checkpoint's weights."""
    notes: list[str]
    """Notes for the user, one sentence each."""


def import_folder(folder: Path, out: Path, *, is_forced: bool = False) -> Imported:
    """Convert a Hugging Face folder to a run folder, atomically.

    Args:
        folder: Folder with config.json, weights and a vocabulary.
        out: The run folder.
        is_forced: Whether an existing run may be replaced.
    """
    check_output_folder(out, source=folder, is_forced=is_forced)
    given = read_config(folder)
    layout = pick(LAYOUTS, str(given["model_type"]), "model_type")
    config = layout.complete(given)
    tensors = read_tensors(folder)
    _check_sizes(config, tensors)
    vocabularies = layout.read_vocabularies(folder, config)
    recipe = to_recipe(layout.to_recipe(config, vocabularies))
    about = {
        **describe_provenance(torch.device("cpu")),
        "data": [],
        "data_note": f"imported from {folder}",
        "data_fingerprint": "",
        "model_type": layout.model_type,
    }
    with replacing_folder(out) as part:
        layout.save_vocabularies(vocabularies, part)
        saved = {"format": FORMAT, "recipe": to_dict(recipe), "about": about}
        write_json(part / CONFIG, saved)
        kind = task_class(recipe)
        fields = kind.load_fields(recipe, part)
        # The sizes in config.json are compared with the weights before memory is allocated.
        draft = draft_model(
            partial(kind.build_model, recipe, fields), num_tensors=len(tensors), origin=str(folder)
        )
        weights, notes = match_weights(draft, tensors, layout, config=config)
        task = kind.from_scratch(recipe, fields, device=torch.device("cpu"))
        new = {name: p for name, p in task.model.named_parameters() if name not in weights}
        put_weights(task.model, weights | new, str(folder))
        save_weights(task.model, part / WEIGHTS)
        add_checksums(part)
    return Imported(out, task, notes)


def _check_sizes(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Raise `ConfigError` if a vocabulary would be larger than any table of embeddings."""
    largest = max((tensor.shape[0] for tensor in tensors.values() if tensor.dim()), default=0)
    for option in ("vocab_size", "decoder_vocab_size"):
        size = config.get(option)
        if size is not None and not (isinstance(size, int) and 0 < size <= largest):
            raise ConfigError(
                f"`{option}` must be the number of embeddings, at most {largest:,} in these "
                f"weights, but is {shown(size)}."
            )


def read_config(folder: Path) -> dict[str, Any]:
    """Read a folder's config.json, with the values of generation_config.json."""
    path, generation = folder / "config.json", folder / "generation_config.json"
    if not path.is_file():
        raise CheckpointError(
            f"{folder} must be a Hugging Face folder with a config.json, but has none."
        )
    config = read_json(path)
    if not isinstance(config, dict) or "model_type" not in config:
        raise CheckpointError(
            f"{path} must have a `model_type` ({one_of(LAYOUTS)}), but has none. "
            "Is it a Hugging Face folder?"
        )
    extra = read_record(generation, dict[str, Any]) if generation.is_file() else {}
    return {**extra, **config}


def check_output_folder(out: Path, *, source: Path, is_forced: bool) -> None:
    """Raise `ConfigError` if the output folder cannot be written."""
    if out.exists() and not out.is_dir():
        raise ConfigError(f"`--out` must be a folder, but {out} is a file.")
    if source.resolve().is_relative_to(out.resolve()):
        raise ConfigError(f"`--out` must not contain the input folder {source}, but is {out}.")
    if not out.exists() or not any(out.iterdir()):
        return
    if not (out / CONFIG).exists():
        raise ConfigError(f"{out} contains files, but no model. Name another folder (--out).")
    if not is_forced:
        raise ConfigError(
            f"{out} already holds a model. Replace it (--force) or name another folder (--out)."
        )
