"""Make "Show, attend and tell" again on drawn scenes, and leave numbers and pictures for its page.

python benchmarks/scenes.py && python benchmarks/pages.py
"""

import argparse
from pathlib import Path

from PIL import Image

from regard.core.files import read_json, write_json
from regard.studies.reproduce.findings import RESULTS, reproduce

NAME = "show-attend-tell"
FOLDER = Path(__file__).parent.parent / "docs" / "results"


def main() -> None:
    """Train what is not trained yet, and measure it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs") / NAME, help="where runs go")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--note", default="", help="what the page should say of these runs")
    arguments = parser.parse_args()
    findings = reproduce(NAME, arguments.out, seed=arguments.seed)
    training = {
        name: read_json(arguments.out / f"{name}-{arguments.seed}" / "metrics.json")["training"]
        for name in findings.numbers
    }
    captions = {name: drawn.caption for name, drawn in findings.plots.items()}
    made = read_json(arguments.out / RESULTS)
    write_json(
        FOLDER / "scenes.json",
        {**made, "training": training, "pictures": captions, "note": arguments.note},
    )
    for name in findings.plots:
        drawn = Image.open(arguments.out / f"{name}.png").convert("RGB")
        # Fewer colours keep the file small; chosen to cover all, they keep red apart from purple.
        small = drawn.quantize(method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        small.save(FOLDER / f"scenes-{name}.png", optimize=True)


if __name__ == "__main__":
    main()
