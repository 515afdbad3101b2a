"""`regard import` and `regard export`: models of other tools → run folders, and back."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Force, OneRun, RunFolder

import_app = typer.Typer(help="Read a model that was trained elsewhere.", no_args_is_help=True)


@import_app.callback()
def import_root() -> None:
    """Read a model that was trained elsewhere."""


@import_app.command("hf")
def import_hf(
    folder: Annotated[Path, typer.Argument(help="A Hugging Face folder.")],
    out: RunFolder = None,
    force: Force = False,
) -> None:
    """Turn a BERT, RoBERTa, DistilBERT or Marian folder of Hugging Face's into a run."""
    from regard.interop.huggingface.load import import_folder

    target = out or Path("runs") / folder.resolve().name
    imported = import_folder(folder, target, is_forced=force)
    for note in imported.notes:
        print(note)
    print(f"{imported.task.num_parameters:,} parameters, task '{imported.task.recipe.task}'.")
    print(f"Run folder: {imported.folder}")


export_app = typer.Typer(help="Write a run for the tools of others.", no_args_is_help=True)


@export_app.callback()
def export_root() -> None:
    """Write a run for the tools of others."""


@export_app.command("hf")
def export_hf(
    run: OneRun,
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    force: Force = False,
) -> None:
    """Write a masked language model or a Marian translator as a Hugging Face folder."""
    from regard.interop.huggingface.export import export_run

    exported = export_run(Path(run), out, is_forced=force)
    for part in exported.left_out:
        print(f"Left out: `{part}`, which this layout has no place for.")
    if exported.difference is None:
        print("Not checked: install `transformers` to have it compared with the run.")
    else:
        print(f"Checked: `transformers` gives the same logits to {exported.difference:.1g}.")
    print(f"Hugging Face folder ({exported.model_type}): {exported.folder}")
