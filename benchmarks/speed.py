"""How fast the recurrent recipes train on Multi30k here, one after the other.

    python benchmarks/speed.py --name cpu

Prints and writes `docs/results/speed-NAME.json`: target tokens a second, the median of the
journal's lines after the first, and what 30 epochs would take at that pace.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from regard.core.files import read_json, read_json_lines, write_json
from regard.data.datasets.catalog import find_data
from regard.data.splits import Splits
from regard.data.text.readers import write_examples
from regard.runs import folder as runs

RECIPES = ("sutskever2014", "cho2014", "bahdanau2015", "luong2015")
EPOCHS = 30


def main() -> None:
    """Train every recipe for some steps and write down its pace."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True, help="what to call this machine")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    arguments = parser.parse_args()
    splits = find_data("multi30k")
    if not isinstance(splits, Splits):
        sys.exit("multi30k is not a data set with a name here.")
    with tempfile.TemporaryDirectory() as folder:
        few = Path(folder) / "few.jsonl"
        write_examples(few, splits.test[:20])
        rows = [measure(recipe, arguments.steps, Path(folder)) for recipe in RECIPES]
    command = f"python benchmarks/speed.py --name {arguments.name} --steps {arguments.steps}"
    value = {"experiment": f"speed-{arguments.name}", "command": command, "runs": rows}
    write_json(arguments.out / f"speed-{arguments.name}.json", value)


def measure(recipe: str, steps: int, folder: Path) -> dict[str, object]:
    """Train a recipe for some steps; validation and test are kept small on purpose."""
    few, out = str(folder / "few.jsonl"), folder / recipe
    words = [f"train.max_steps={steps}", f"train.log_every={max(1, steps // 6)}"]
    words += ["train.schedule.kind=constant", "train.average_last=0", "search.beams=1"]
    command = ["train", "multi30k", "--valid", few, "--test", few, "--recipe", recipe]
    subprocess.run(
        [sys.executable, "-m", "regard", *command, "--out", str(out), *words],
        check=True,
        capture_output=True,
    )
    metrics = read_json(out / runs.METRICS)
    lines = [row for row in read_json_lines(out / runs.TRAINING_LOG) if row["kind"] == "train"]
    pace = median(row["tokens_per_second"] for row in lines[1:])
    # Target tokens of an epoch, end tokens included, from what the steps saw.
    tokens = metrics["training"]["target_tokens"] / metrics["training"]["steps"]
    print(f"{recipe}: {pace:,.0f} target tokens/s")
    return {
        "recipe": recipe,
        "tokens_per_second": round(pace, 1),
        "tokens_per_step": round(tokens),
        "parameters": metrics["parameters"],
        **{key: metrics[key] for key in ("hardware", "torch", "commit", "seed")},
    }


if __name__ == "__main__":
    main()
