"""How fast each recipe trains on each machine."""

from pathlib import Path
from typing import Any

from .parts import table

MULTI30K_TOKENS = 454_610
"""Target tokens of an epoch with the recipes' BPE of 8,000 pieces, end tokens included."""
EPOCHS = 30


def write(values: dict[str, dict[str, Any]], _folder: Path) -> str:
    """Put the paces of all machines side by side."""
    machines = list(values.values())
    names = [machine["runs"][0]["hardware"] for machine in machines]
    paces = [
        {run["recipe"]: run["tokens_per_second"] for run in machine["runs"]} for machine in machines
    ]
    rows = [
        (
            recipe,
            *(f"{pace[recipe]:,.0f}" for pace in paces),
            *(f"{MULTI30K_TOKENS * EPOCHS / pace[recipe] / 60:,.0f} min" for pace in paces),
        )
        for recipe in paces[0]
    ]
    head = ("recipe", *(f"tokens/s, {name}" for name in names))
    head += tuple(f"{EPOCHS} epochs, {name}" for name in names)
    making = [
        f"- `{machine['command']}`; {run['hardware']}, torch {run['torch']}, "
        f"commit {run['commit']}, seed {run['seed']}: [`{machine['experiment']}.json`]"
        f"({machine['experiment']}.json)"
        for machine in machines
        for run in machine["runs"][:1]
    ]
    return "\n".join(
        [
            "# What training on Multi30k takes",
            "",
            "Target tokens a second while training alone, bf16 matrix products, batches of 3,000 "
            f"positions; and what {EPOCHS} epochs of {MULTI30K_TOKENS:,} target tokens take at "
            "that pace, validation not counted.",
            "",
            table(head, rows),
            "",
            "On the GPU a recurrent step is bound by launching kernels, not by arithmetic: of "
            "fourteen runs side by side ([multi30k.md](multi30k.md)) each is nearly as fast as "
            "one alone. Without attention, or without input feeding, a whole "
            "target runs through the fused kernels at once.",
            "",
            "## How it was made",
            "",
            *making,
            "",
        ]
    )
