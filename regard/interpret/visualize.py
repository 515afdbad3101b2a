"""Plots of one prediction: attention and attribution, over words, an image or a recording."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import torch

from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.data.modality import check_source
from regard.interpret.attribution import Attribution, Explanation, attribute
from regard.interpret.self_attention import attend_to_self
from regard.interpret.visualization import OutputTokens, Visualization
from regard.plots.grid import COLUMNS, Tile
from regard.plots.inputs import check_image, resize_image
from regard.plots.word_maps import WordMap
from regard.tasks.attention_plots import attention_tiles, num_columns, spectrogram_of
from regard.tasks.base import Attends, GeneratesImages, Task
from regard.tasks.decoding.alternatives import add_alternatives
from regard.tasks.decoding.beam_tree import find_beam_tree
from regard.tasks.generation.task import Predictor
from regard.tasks.notebook import describe_task
from regard.tasks.prediction import AttentionMap
from regard.tasks.reading import find_modality

TITLES = {
    "attention": "attention",
    "gradients": "gradient × input",
    "integrated_gradients": "integrated gradients",
    "erasure": "erasure",
}
"""Titles of the maps of each method."""

WIDE = 24
"""Number of inputs above which the maps of several methods stand below each other."""

HOW_TO_READ = (
    "Rows are the tokens of the output. A positive contribution of an input, in blue, raises the "
    "log-probability of the token; a negative one, in red, lowers it. Attention weights have no "
    "sign. Columns after the line are the earlier tokens of the output. Each map has its own scale."
)
ABOUT_FAITHFULNESS = (
    "Comprehensiveness is the loss of probability without the tokens of the source that a method "
    "ranks highest, sufficiency the loss with these tokens alone (DeYoung et al. 2020), both for "
    "1 to 50 % of the tokens. A faithful method has a high comprehensiveness and a low sufficiency."
)


def visualize(
    task: Task[Any],
    source: str,
    target: str | None = None,
    *,
    part: str = "cross",
    has_heads: bool = False,
    num_alternatives: int | None = None,
) -> Visualization:
    """Predict for one source and return the plots of the prediction.

    Args:
        task: The run.
        source: A text, or the file of an image, a video or a recording.
        target: A target in place of the predicted one.
        part: `cross` for attention to the source, `encoder` or `decoder` for self-attention.
        has_heads: Whether to plot each layer and head in place of their mean.
        num_alternatives: Number of most likely tokens at each position, if they are shown.
    """
    _check_source(task, source)
    if isinstance(task, GeneratesImages):
        images = task.image_grid(source, target)
        tiles = [
            Tile(resize_image(check_image(one.image)), one.caption, one.note) for one in images
        ]
        return Visualization(source, tiles=tiles, facts=_facts(task, source, ""))
    if not isinstance(task, Attends):
        raise ConfigError(
            "`show` needs a run with attention or with images as output, but the task of this run "
            f"is '{task.recipe.task}'."
        )
    example, text = task.example_to_show(source, target)
    if part == "cross":
        (attention,) = task.attend([example])
    else:
        attention = attend_to_self(task, example, part)
    if not attention.weights.shape[0]:
        raise ConfigError(
            "The model of this run has no attention, so there is no map to show. "
            f"Its prediction is '{text}'. Other methods need none, such as `--by gradients`."
        )
    audio = spectrogram_of(attention)
    words: Mapping[str, WordMap] = {}
    if has_heads:
        words, audio = _head_maps(attention), None
    elif attention.num_text_tokens and audio is None:
        only = attention.text_only()
        words = {"attention": WordMap(only.mean().numpy(), *only.labels)}
    return Visualization(
        text,
        (text,) if attention.kind == "attention" else (text, f"Shown: {attention.kind}"),
        audio=audio,
        words=words,
        tiles=[] if has_heads else attention_tiles(attention),
        columns=attention.weights.shape[1] if has_heads else num_columns(attention),
        tokens=_tokens(task, example, num_alternatives),
        facts=_facts(task, source, text, shown=_describe_map(attention, part, has_heads)),
    )


def visualize_attribution(
    task: Task[Any],
    source: str,
    target: str | None = None,
    *,
    methods: Sequence[str],
    num_alternatives: int | None = None,
) -> Visualization:
    """Explain the prediction for one source by one or several methods, side by side.

    With several methods, their faithfulness is measured.

    Args:
        task: The run.
        source: A text, or the file of an image, a video or a recording.
        target: A target, continuation or label in place of the predicted one.
        methods: The methods; see `attribution.METHODS`.
        num_alternatives: Number of most likely tokens at each position, if they are shown.
    """
    _check_source(task, source)
    explained = attribute(
        task, source, methods=methods, target=target, is_measured=len(methods) > 1
    )
    text = explained.prediction
    names = ", ".join(TITLES[method] for method in methods)
    measures = {
        TITLES[one.method]: one.faithfulness
        for one in explained.attributions
        if one.faithfulness is not None
    }
    if explained.random is not None:
        measures["random scores"] = explained.random
    plots = Visualization(
        text,
        (text, f"Shown: {names}"),
        tokens=_tokens(task, Example(source, text), num_alternatives),
        facts=_facts(task, source, text, shown=names),
        measures=measures,
        notes=(HOW_TO_READ, *[ABOUT_FAITHFULNESS] * bool(measures)),
    )
    if find_modality(task.recipe.data).medium is None:
        maps = {TITLES[one.method]: word_map(explained, one) for one in explained.attributions}
        # Wide maps stand below each other.
        is_wide = any(len(one.columns) > WIDE for one in maps.values())
        return replace(plots, words=maps, columns=1 if is_wide else 2)
    return _over_medium(plots, task, explained)


def visualize_tree(task: Task[Any], source: str) -> Visualization:
    """Search for the target of one source and return the plot of the beam tree.

    Args:
        task: A run of a model that generates tokens.
        source: A text, or the file of an image, a video or a recording.
    """
    tree = find_beam_tree(task, source)
    text = tree.predictions[0].text
    title = f"{source} → {text}" if find_modality(task.recipe.data).medium is None else text
    facts = _facts(task, source, text)
    return Visualization(title, (text,), branches=tree.branches, facts=facts)


def word_map(explained: Explanation, found: Attribution) -> WordMap:
    """Return the contributions of source and, behind a line, of earlier tokens of the output."""
    source, target = (
        [token.removeprefix("▁") or token for token in side]
        for side in (explained.source_tokens, explained.target_tokens)
    )
    if not found.prefix.any():
        return WordMap(found.source, target, source)
    # The last token is no input.
    scores = np.concatenate([found.source, found.prefix[:, :-1]], axis=1)
    return WordMap(scores, target, [*source, *target[:-1]], divider=len(source))


def _over_medium(plots: Visualization, task: Any, explained: Explanation) -> Visualization:
    """Add plots over an image, a video or a recording; negative contributions count as zero."""
    (base,) = task.attend([Example(explained.source, explained.prediction)])
    maps = [
        replace(
            base,
            source=explained.source_tokens,
            target=explained.target_tokens,
            weights=torch.tensor(one.source.clip(0))[None, None],
            kind=TITLES[one.method],
            grid=_grid_of(base, len(explained.source_tokens)),
        )
        for one in explained.attributions
    ]
    audios = [spectrogram_of(one) for one in maps]
    if audios[0] is not None:
        weights = {name: rows for one in audios if one for name, rows in one.weights.items()}
        return replace(plots, audio=replace(audios[0], weights=weights))
    tiles: list[Tile] = []
    for one in maps:
        image, *shown = attention_tiles(one)
        captions = [f"{one.kind}: {tile.caption}" for tile in shown]
        named = [replace(tile, caption=name) for tile, name in zip(shown, captions, strict=True)]
        tiles += named if tiles else [image, *named]
    return replace(plots, tiles=tiles, columns=num_columns(base) if base.grid else COLUMNS)


def _grid_of(base: AttentionMap, num_cells: int) -> tuple[int, ...] | None:
    """Return the grid of the cells, which is square if the encoder has a single position."""
    if base.grid is None or np.prod(base.grid) == num_cells:
        return base.grid
    side = round(num_cells**0.5)
    return side, num_cells // side


def _head_maps(attention: AttentionMap) -> dict[str, WordMap]:
    """Return one map per layer and head."""
    only = attention.text_only() if attention.num_text_tokens else attention
    rows, columns = only.labels
    num_layers, num_heads = only.weights.shape[:2]
    return {
        f"layer {layer + 1}, head {head + 1}": WordMap(
            only.weights[layer, head].numpy(), rows, columns
        )
        for layer, head in product(range(num_layers), range(num_heads))
    }


def _describe_map(attention: AttentionMap, part: str, has_heads: bool) -> str:
    name = "cross-attention" if part == "cross" else f"self-attention of the {part}"
    num_layers, num_heads = attention.weights.shape[:2]
    size = f"{num_layers} × {num_heads} layers × heads"
    kind = name if attention.kind == "attention" else attention.kind
    return f"{kind}, {size}" if has_heads else f"{kind}, mean of {size}"


def _check_source(task: Task[Any], source: str) -> None:
    if not source.strip():
        raise ConfigError("The sentence must have at least one word, but is empty.")
    check_source(source, find_modality(task.recipe.data))


def _facts(task: Task[Any], source: str, prediction: str, *, shown: str = "") -> dict[str, str]:
    """Return names and values that describe a plot on a page."""
    facts = {**describe_task(task), "source": source, "output": prediction, "shown": shown}
    return {name: value for name, value in facts.items() if value}


def _tokens(
    task: Task[Any], example: Example, num_alternatives: int | None = None
) -> OutputTokens | None:
    """Return the tokens of an output with probabilities; None if it is not generated."""
    if not isinstance(task, Predictor):
        if num_alternatives is not None:
            raise ConfigError(
                "`--alternatives` are for models that generate a target for a source, but the task "
                f"of this run is '{task.recipe.task}'."
            )
        return None
    example = replace(example, source=task.parse_source(example.source))
    (scored,) = task.score([example])
    found = OutputTokens(scored.tokens, scored.token_log_probs)
    if num_alternatives is None:
        return found
    prediction = replace(scored, token_ids=tuple(task.target.read(example.target)[1:]))
    ((best,),) = add_alternatives(
        task, [example.source], [[prediction]], num=num_alternatives, search=task.search
    )
    return replace(found, alternatives=best.alternatives)
