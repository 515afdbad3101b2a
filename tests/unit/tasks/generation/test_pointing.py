from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from regard.data.datasets.synthetic.scenes import find_scene, render
from regard.data.datasets.synthetic.scenes.captions import caption, caption_words
from regard.data.example import Example
from regard.data.text.field import TextField
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer
from regard.metrics.vision.regions import box_region
from regard.tasks.generation.evaluation import measure_pointing
from regard.tasks.prediction import AttentionMap, cell_names

GRID = (16, 16)
EXAMPLES = [
    Example(f"scenes/0/{number}", caption(find_scene(f"scenes/0/{number}"))) for number in range(9)
]
FIELD = TextField(
    train_tokenizer(TokenizerConfig(kind="char", vocab_size=100), [e.target for e in EXAMPLES]),
    has_start=True,
)


@dataclass
class Looker:
    """Looks, at each letter, at the middle of one of the things that the word names, or beside."""

    is_sharp: bool = True
    num_layers: int = 1
    shift: int = 0
    grid: tuple[int, int] | None = GRID
    num_before: int = 0
    target: TextField = FIELD

    def attend(self, examples):
        return [self.look(example) for example in examples]

    def look(self, example):
        scene = find_scene(example.source)
        words = FIELD.tokenizer.word_index(example.target)
        told = caption_words(scene)
        weights = torch.full((len(words) + 1, 256), 0.001)  # the end token looks anywhere
        for row, word in enumerate(words):
            if word >= 0 and told[word].object_indices and self.is_sharp:
                index = told[word].object_indices[0] + self.shift
                obj = scene.objects[index % len(scene.objects)]
                x, y = int(obj.x * 16), int(obj.y * 16)
                weights[row, 16 * y + x] = 1.0
        before = torch.full((len(words) + 1, self.num_before), 2.0)
        weights = torch.cat([before, weights], 1).expand(self.num_layers, 1, -1, -1)
        names = ("word",) * self.num_before + cell_names(GRID)
        return AttentionMap(
            names,
            (*example.target, "</s>"),
            weights,
            grid=self.grid,
            image=np.array(render("scenes/0/1")),
        )


def test_looking_at_what_each_word_names_is_right():
    result = measure_pointing(Looker(), EXAMPLES, num_bootstrap=50)
    assert result.value == 100
    num_naming = sum(
        bool(w.object_indices) for e in EXAMPLES for w in caption_words(find_scene(e.source))
    )
    assert result.detail["count"] == num_naming
    assert result.interval is not None


def test_looking_at_another_thing_is_wrong():
    examples = [
        e
        for e in EXAMPLES
        if len(find_scene(e.source).groups) == len(find_scene(e.source).objects) > 1
    ]
    assert len(examples) > 1
    assert measure_pointing(Looker(shift=1), examples).value == 0


def test_weights_that_are_all_alike_point_as_chance_does():
    result = measure_pointing(Looker(is_sharp=False), EXAMPLES)
    # A thing's box is a little more than the thing.
    boxes = [
        np.mean(
            np.logical_or.reduce(
                [box_region(scene.objects[t].box, *GRID) for t in word.object_indices]
            )
        )
        for scene in (find_scene(e.source) for e in EXAMPLES)
        for word in caption_words(scene)
        if word.object_indices
    ]
    assert result.value == pytest.approx(result.detail["chance"])
    assert 0.6 * 100 * np.mean(boxes) < result.value <= 100 * np.mean(boxes)


def test_words_before_the_cells_are_not_looked_at():
    assert measure_pointing(Looker(num_before=3), EXAMPLES).value == 100


@pytest.mark.parametrize(
    "example",
    [
        replace(EXAMPLES[0], target="a dog"),
        replace(EXAMPLES[0], source="photos/0/1"),
        replace(EXAMPLES[0], source="digits/5"),
        replace(EXAMPLES[0], source=("a text", "scenes/0/1")),
    ],
)
def test_only_scenes_with_their_captions_count(example):
    assert measure_pointing(Looker(), [example]) is None
    both = measure_pointing(Looker(), [example, EXAMPLES[1]])
    assert both == measure_pointing(Looker(), [EXAMPLES[1]])


@pytest.mark.parametrize("looker", [Looker(num_layers=0), Looker(grid=None)])
def test_without_attention_on_a_grid_there_is_nothing_to_measure(looker):
    assert measure_pointing(looker, EXAMPLES) is None
