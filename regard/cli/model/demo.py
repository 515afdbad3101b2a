"""`regard demo`: train two models, compare, translate, look — in minutes, without a download."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import Device

if TYPE_CHECKING:
    from rich.console import Console

    from regard.tasks.generation.task import Predictor

SENTENCES = (
    "I would like to learn German.",
    "The old man reads the new book because he is tired.",
    "Tomorrow I get up at seven.",
)

MODELS = {
    "bahdanau2015": (
        "bahdanau2015-laptop",
        # Smaller batches learn in four passes nearly what the recipe learns in six.
        ("data.batch.max_tokens=800", "train.max_epochs=4"),
    ),
    "vaswani2017": (
        "vaswani2017-tiny",
        (
            "data.source.kind=word",  # a grammar's words need no pieces
            # Small batches, half the blocks and no dropout, which costs a quarter of the time:
            # so there are enough steps in a few minutes on one core.
            "data.batch.max_tokens=600",
            "model.encoder.num_layers=2",
            "model.decoder.num_layers=2",
            "model.encoder.dropout=0.0",
            "model.decoder.dropout=0.0",
            "train.max_steps=2800",
            "train.schedule.warmup_steps=200",
            "train.optimizer.learning_rate=0.003",
        ),
    ),
}
"""By the name of a run its recipe, and what has to change for it to fit into the time."""


def demo(
    out: Annotated[Path, typer.Option(help="The folder of the run folders.")] = Path("runs/demo"),
    device: Device = "auto",
) -> None:
    """Train two small translators on the built-in phrasebook and show what they do.

    One is recurrent with attention, the other a transformer. A second call finds the trained
    models and goes straight to the results; after Ctrl-C it goes on where the first stopped.
    """
    from rich.console import Console

    from regard.core.files import write_text
    from regard.core.logging import logger
    from regard.runs import folder as runs
    from regard.runs.parallel import train_together
    from regard.runs.request import Request
    from regard.studies.compare.comparison import compare
    from regard.studies.compare.rendering import comparison_page, part_table
    from regard.studies.compare.sections import glance

    requests = [
        Request(data=("phrasebook",), recipe=recipe, settings=words, out=out / name, device=device)
        for name, (recipe, words) in MODELS.items()
    ]
    # The report is the last thing that training writes.
    waiting = [request for request in requests if not (request.out / runs.REPORT).exists()]
    if not waiting:
        print(f"{out} holds trained models; remove the folder to train again.")
    elif not train_together([request.going_on() for request in waiting]):
        logger.info("Stopped; nothing is lost. The same command goes on.")
        raise typer.Exit(130)
    folders = [request.out for request in requests]
    comparison = compare(folders, device=device)
    predictors = {folder.name: runs.load(folder, device) for folder in folders}
    console = Console()
    console.print(part_table(glance(comparison)))
    _translate(predictors)
    _look(predictors, console)
    for folder in folders:
        print(f"Report: {(folder / runs.REPORT).resolve()}")
    page = out / "comparison.html"
    write_text(page, comparison_page(comparison))
    print(f"Comparison: {page.resolve()}")
    print(f'Try: regard show {folders[0]} "{SENTENCES[0]}"')


def _translate(predictors: "dict[str, Predictor]") -> None:
    """Print what every model makes of the sentences."""
    print("Translations:")
    answers = [predictor.translate(SENTENCES) for predictor in predictors.values()]
    width = max(map(len, predictors))
    for source, *outputs in zip(SENTENCES, *answers, strict=True):
        print(f"  {source}")
        for name, output in zip(predictors, outputs, strict=True):
            print(f"    {name:{width}} → {output}")


def _look(predictors: "dict[str, Predictor]", console: "Console") -> None:
    """Draw where every model looks while it translates the first sentence."""
    from regard.data.example import Example
    from regard.plots import terminal

    print("\nWhere they looked (rows: what they wrote; columns: what they read):")
    for name, predictor in predictors.items():
        (output,) = predictor.translate(SENTENCES[:1])
        (found,) = predictor.attend([Example(SENTENCES[0], output)])
        print(f"\n{name}")
        console.print(terminal.heatmap(found.mean().numpy(), *found.labels))
