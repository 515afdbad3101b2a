"""`regard demo`: train, score, translate, look — in a few minutes and without a download."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Device

SENTENCES = (
    "I would like to learn German.",
    "The old man reads the new book because he is tired.",
    "Tomorrow I get up at seven.",
)


def demo(
    out: Annotated[Path, typer.Option(help="The run folder.")] = Path("runs/demo"),
    device: Device = "auto",
) -> None:
    """Train a small translator on the built-in phrasebook and show what it does.

    A second call finds the trained model and goes straight to the results.
    """
    from rich.console import Console

    from regard.core.files import read_json
    from regard.data.examples import Example
    from regard.tasks import runs
    from regard.tasks.evaluation import evaluate
    from regard.tasks.learning import train
    from regard.tasks.reading import read_side
    from regard.tasks.report import write_report
    from regard.tasks.request import Request
    from regard.visual import terminal

    request = Request(
        data=("phrasebook",),
        recipe="bahdanau2015-laptop",
        out=out,
        device=device,
        is_forced=True,
    )
    if (out / runs.METRICS).exists():
        print(f"{out} holds a trained model; remove the folder to train again.")
        predictor = runs.load(out, device)
        examples = read_side(("phrasebook",), "test", seed=predictor.recipe.data.seed)
        evaluation = evaluate(predictor, examples)
    else:
        trained = train(request)
        if trained.evaluation is None:
            raise typer.Exit(130)
        predictor, evaluation = trained.predictor, trained.evaluation
    seconds = read_json(out / runs.METRICS)["training"]["seconds"]
    print(f"\nTrained for {seconds:.0f} s; on {len(evaluation.outputs):,} held-out sentences:")
    for result in evaluation.results.values():
        print(f"  {result}")
    print("\nTranslations:")
    outputs = predictor.translate(SENTENCES)
    for source, output in zip(SENTENCES, outputs, strict=True):
        print(f"  {source}\n    → {output}")
    (found,) = predictor.attend([Example(SENTENCES[0], outputs[0])])
    print("\nWhere it looked (rows: what it wrote; columns: what it read):")
    Console().print(terminal.heatmap(found.mean().numpy(), *found.labels))
    path = write_report(out, predictor, evaluation, title="regard: English → German phrasebook")
    print(f"Report: {path.resolve()}")
    print(f'Try: regard show {out} "I would like to learn German."')
