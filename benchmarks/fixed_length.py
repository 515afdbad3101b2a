"""Measure search with outputs of a fixed length: the time of steps, without that of text.

    python benchmarks/fixed_length.py vaswani2017-base --device cuda --batch 1,512

Models have random weights. All outputs have 32 tokens, all sources 24; the vocabulary has 8,000.
The encoder is included. Prints target tokens per second of the best hypotheses as JSON.
"""

import argparse
import json
import time

import torch

from regard.core.specs import TextSpec
from regard.models.build import build_model
from regard.models.packing import pack
from regard.runs.recipes import load_recipe
from regard.search.cuda_graphs import StepGraphs, encode
from regard.search.scorer import ModelScorer
from regard.search.search import search
from regard.search.settings import SearchConfig

VOCAB_SIZE, PAD, START, END = 8000, 0, 2, 3
SOURCE_LENGTH, TARGET_LENGTH = 24, 32
ROUNDS = 6


def main() -> None:
    """Measure the recipes named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipes", nargs="+")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", default="1,512")
    parser.add_argument("--beam", default="1,5")
    parser.add_argument("--precision", default="fp32,bf16")
    options = parser.parse_args()
    for recipe in options.recipes:
        torch.manual_seed(0)
        config = load_recipe(recipe, []).model
        model = build_model(config, source=TextSpec(VOCAB_SIZE), target_vocab_size=VOCAB_SIZE)
        model = model.to(options.device).eval().requires_grad_(False)
        for precision in options.precision.split(","):
            packed = pack(model, precision)
            if options.device.startswith("cuda"):
                packed.step_graphs = StepGraphs(packed)
            for batch in map(int, options.batch.split(",")):
                for beams in map(int, options.beam.split(",")):
                    seconds = min(_seconds(packed, batch, beams) for _ in range(ROUNDS))
                    row = {"recipe": recipe, "precision": precision, "batch": batch, "beams": beams}
                    speed = round(batch * TARGET_LENGTH / seconds)
                    print(json.dumps({**row, "tokens_per_second": speed}), flush=True)


@torch.inference_mode()
def _seconds(model: torch.nn.Module, batch: int, beams: int) -> float:
    """Return the seconds of one search."""
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(4, VOCAB_SIZE, (batch, SOURCE_LENGTH), generator=generator).to(device)
    mask = torch.ones_like(tokens, dtype=torch.bool)
    _wait(device)
    started = time.perf_counter()
    memory = encode(model, tokens, mask)
    search(
        # The end token is never generated, so that all outputs have the maximum length.
        ModelScorer(model, memory, banned=(PAD, START, END)),
        start=START,
        end=END,
        max_lengths=torch.full((batch,), TARGET_LENGTH),
        config=SearchConfig(beams=beams),
    )
    _wait(device)
    return time.perf_counter() - started


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    main()
