"""`regard demo`: train two small models, compare them and plot their attention weights."""

import os
import shutil
import sys
from pathlib import Path

from regard.cli.options import Device, RunFolders
from regard.cli.output import build_console, stop


def demo(out: RunFolders = Path("runs/demo"), device: Device = "auto") -> None:
    """Train two small translation models and compare them.

    One is recurrent with attention, the other a transformer; both are trained on the built-in
    phrasebook. A second call reuses the trained models; after Ctrl-C, it resumes training.
    """
    from regard.core.files import write_text
    from regard.interpret.visualize import visualize
    from regard.runs.folder import REPORT, load
    from regard.studies.compare.comparison import compare
    from regard.studies.compare.rendering import comparison_page, section_table
    from regard.studies.compare.sections import overview
    from regard.studies.demo import MODELS, SENTENCES, is_trained, train_models

    if is_trained(out):
        print(f"{out} holds trained models; remove the folder to train again.")
    elif not train_models(out, device):
        stop("Run the same command to resume.")
    comparison = compare([out / name for name in MODELS], device=device)
    tasks = {name: load(out / name, device) for name in MODELS}
    console = build_console()
    console.print(section_table(overview(comparison)))
    print("Translations:")
    predictions = [task.translate(SENTENCES) for task in tasks.values()]
    width = max(map(len, tasks))
    for source, *targets in zip(SENTENCES, *predictions, strict=True):
        print(f"  {source}")
        for name, target in zip(tasks, targets, strict=True):
            print(f"    {name:{width}} → {target}")
    print("\nAttention weights (rows: target; columns: source):")
    for name, task in tasks.items():
        print(f"\n{name}")
        visualize(task, SENTENCES[0]).print(console)
    for name in MODELS:
        print(f"Report: {(out / name / REPORT).resolve()}")
    page = out / "comparison.html"
    write_text(page, comparison_page(comparison))
    print(f"Comparison: {page.resolve()}")
    print(f'Try: {command_name()} show {out / next(iter(MODELS))} "{SENTENCES[0]}"')
    runs = " ".join(f"{name}={out / name}" for name in MODELS)
    print(f"Page: {command_name()} serve {runs} (needs: pip install 'regard[serve]')")


def command_name() -> str:
    """Return the command as it can be typed here: `regard`, or its path if that is not found."""
    script = Path(sys.argv[0])
    is_found = script.name != "regard" or shutil.which("regard") is not None
    return "regard" if is_found else os.path.relpath(script)
