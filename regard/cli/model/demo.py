"""`regard demo`: train two models, compare, translate, look — in minutes, without a download."""

from pathlib import Path

from regard.cli.options import Device, RunFolders
from regard.cli.output import stop


def demo(out: RunFolders = Path("runs/demo"), device: Device = "auto") -> None:
    """Train two small translators on the built-in phrasebook and show what they do.

    One is recurrent with attention, the other a transformer. A second call finds the trained
    models and goes straight to the results; after Ctrl-C it goes on where the first stopped.
    """
    from rich.console import Console

    from regard.core.files import write_text
    from regard.interpret.visualize import visualize
    from regard.runs.folder import REPORT, load
    from regard.studies.compare.comparison import compare
    from regard.studies.compare.rendering import comparison_page, part_table
    from regard.studies.compare.sections import glance
    from regard.studies.demo import MODELS, SENTENCES, is_trained, train_models

    if is_trained(out):
        print(f"{out} holds trained models; remove the folder to train again.")
    elif not train_models(out, device):
        stop("The same command goes on.")
    comparison = compare([out / name for name in MODELS], device=device)
    tasks = {name: load(out / name, device) for name in MODELS}
    console = Console()
    console.print(part_table(glance(comparison)))
    print("Translations:")
    predictions = [task.translate(SENTENCES) for task in tasks.values()]
    width = max(map(len, tasks))
    for source, *targets in zip(SENTENCES, *predictions, strict=True):
        print(f"  {source}")
        for name, target in zip(tasks, targets, strict=True):
            print(f"    {name:{width}} → {target}")
    print("\nWhere they looked (rows: what they wrote; columns: what they read):")
    for name, task in tasks.items():
        print(f"\n{name}")
        visualize(task, SENTENCES[0]).print(console)
    for name in MODELS:
        print(f"Report: {(out / name / REPORT).resolve()}")
    page = out / "comparison.html"
    write_text(page, comparison_page(comparison))
    print(f"Comparison: {page.resolve()}")
    print(f'Try: regard show {out / next(iter(MODELS))} "{SENTENCES[0]}"')
