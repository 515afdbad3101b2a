"""`regard import`: a model of another house → a run folder."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Force, RunFolder

app = typer.Typer(help="Read a model that was trained elsewhere.", no_args_is_help=True)


@app.callback()
def root() -> None:
    """Read a model that was trained elsewhere."""


@app.command("hf")
def hf(
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
