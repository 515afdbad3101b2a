"""`regard export`: a run folder → a model that another house's tools open."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Force, OneRun

app = typer.Typer(help="Write a run for the tools of others.", no_args_is_help=True)


@app.callback()
def root() -> None:
    """Write a run for the tools of others."""


@app.command("hf")
def hf(
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
