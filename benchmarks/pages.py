"""Draw the result pages in `docs/results` from the JSON files beside them.

python benchmarks/pages.py
"""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from results import (
    anomalies,
    captions,
    compression,
    cost,
    entailment,
    features,
    generalisation,
    images,
    ladder,
    language,
    lengths,
    long,
    longer,
    multi30k,
    paraphrases,
    phrasebook,
    pictures,
    pretrained_translation,
    pretraining,
    scenes,
    seeing_questions,
    sentences,
    speech,
    speed,
    spelling,
    video,
)

from regard.core.files import read_json, write_text

FOLDER = Path(__file__).parent.parent / "docs" / "results"


def main() -> None:
    """Draw every page whose results are there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where results and pages lie")
    folder: Path = parser.parse_args().folder
    for name, write in PAGES.items():
        path = folder / f"{name}.json"
        if path.exists():
            _save(folder / f"{name}.md", write(read_json(path), folder))
    for name, write in JOINED.items():
        values = {path.name: read_json(path) for path in sorted(folder.glob(f"{name}-*.json"))}
        if values:
            _save(folder / f"{name}.md", write(values, folder))


def _save(path: Path, page: str) -> None:
    write_text(path, page)
    print(path)


PAGES: dict[str, Callable[[dict[str, Any], Path], str]] = {
    "multi30k": multi30k.write,
    "ladder-multi30k": partial(ladder.write, title="Multi30k"),
    "ladder-tatoeba": partial(ladder.write, title="Tatoeba"),
    "lengths-multi30k": partial(lengths.write, title="Multi30k"),
    "lengths-tatoeba": partial(lengths.write, title="Tatoeba"),
    "phrasebook": phrasebook.write,
    "language": language.write,
    "pretraining": pretraining.write,
    "pretrained-translation": pretrained_translation.write,
    "entailment": entailment.write,
    "pronunciation": spelling.write_pronunciation,
    "cmudict": spelling.write_cmudict,
    "transliteration": spelling.write_transliteration,
    "japanese": spelling.write_japanese,
    "generalisation": generalisation.write,
    "summaries": longer.write_summaries,
    "dialogue": longer.write_dialogue,
    "questions": longer.write_questions,
    "long": long.write,
    "classification": images.write_classification,
    "captioning": captions.write_captioning,
    "multimodal": captions.write_multimodal,
    "scenes": scenes.write,
    "paraphrases": paraphrases.write,
    "speech": speech.write,
    "visual-questions": seeing_questions.write,
    "video": video.write,
    "sentences": sentences.write,
    "pictures": pictures.write,
    "anomalies": anomalies.write,
    "compression": compression.write,
    "features": features.write,
}
"""Pages with one file of results, which has their name."""

JOINED: dict[str, Callable[[dict[str, dict[str, Any]], Path], str]] = {
    "speed": speed.write,
    "cost": cost.write,
}
"""Pages with a file of results for each machine, by file name: `speed-cpu.json` and others."""


if __name__ == "__main__":
    main()
