"""`regard import` and `regard export`: conversion of Hugging Face checkpoints."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.commands import Command, Group
from regard.cli.options import OUT, Force, OneRun, RunFolder

import_app = typer.Typer(help="Import a pretrained model as a run folder.", cls=Group)


@import_app.callback()
def import_root() -> None:
    """Import a pretrained model as a run folder."""


@import_app.command("hf", cls=Command)
def import_hf(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A Hugging Face checkpoint folder.")
    ],
    out: RunFolder = None,
    force: Force = False,
) -> None:
    """Import a BERT, RoBERTa, DistilBERT, ViT or Marian checkpoint of Hugging Face."""
    from regard.interop.huggingface.load import import_folder

    target = out or Path("runs") / folder.resolve().name
    imported = import_folder(folder, target, is_forced=force)
    for note in imported.notes:
        print(note)
    print(f"{imported.task.num_parameters:,} parameters, task '{imported.task.recipe.task}'.")
    print(f"Run folder: {imported.folder}")


export_app = typer.Typer(help="Export a run to another format.", cls=Group)


@export_app.callback()
def export_root() -> None:
    """Export a run to another format."""


@export_app.command("hf", cls=Command)
def export_hf(
    run: OneRun,
    out: Annotated[Path, typer.Option(*OUT, help="The folder to write.")],
    force: Force = False,
) -> None:
    """Export a masked language model, a Marian or a ViT model as a Hugging Face checkpoint."""
    from regard.interop.huggingface.export import export_run

    exported = export_run(Path(run), out, is_forced=force)
    for part in exported.left_out:
        print(f"Left out: `{part}`, which this layout does not have.")
    if exported.difference is None:
        print("Not checked: install `transformers` to compare it with the run.")
    else:
        print(f"Checked: `transformers` gives the same logits to {exported.difference:.1g}.")
    print(f"Hugging Face folder ({exported.model_type}): {exported.folder}")
