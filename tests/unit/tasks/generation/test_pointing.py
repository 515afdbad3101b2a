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
class PointingModel:
    """Attends, at each letter, to the centre of an object that the word names, or of another."""

    is_sharp: bool = True
    num_layers: int = 1
    shift: int = 0
    grid: tuple[int, int] | None = GRID
    num_before: int = 0
    target: TextField = FIELD

    def attend(self, examples):
        return [self._attend(example) for example in examples]

    def _attend(self, example):
        scene = find_scene(example.source)
        words = FIELD.tokenizer.word_index(example.target)
        naming = caption_words(scene)
        weights = torch.full((len(words) + 1, 256), 0.001)  # the end token attends evenly
        for row, word in enumerate(words):
            if word >= 0 and naming[word].object_indices and self.is_sharp:
                index = naming[word].object_indices[0] + self.shift
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


def test_attention_on_the_named_objects_is_correct():
    result = measure_pointing(PointingModel(), EXAMPLES, num_bootstrap=50)
    assert result.value == 100
    num_naming = sum(
        bool(w.object_indices) for e in EXAMPLES for w in caption_words(find_scene(e.source))
    )
    assert result.detail["count"] == num_naming
    assert result.interval is not None


def test_attention_on_other_objects_is_wrong():
    examples = [
        e
        for e in EXAMPLES
        if len(find_scene(e.source).groups) == len(find_scene(e.source).objects) > 1
    ]
    assert len(examples) > 1
    assert measure_pointing(PointingModel(shift=1), examples).value == 0


def test_uniform_weights_have_the_chance_level():
    result = measure_pointing(PointingModel(is_sharp=False), EXAMPLES)
    # The box of an object is a little larger than the object.
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


def test_words_before_the_cells_are_ignored():
    assert measure_pointing(PointingModel(num_before=3), EXAMPLES).value == 100


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
    assert measure_pointing(PointingModel(), [example]) is None
    both = measure_pointing(PointingModel(), [example, EXAMPLES[1]])
    assert both == measure_pointing(PointingModel(), [EXAMPLES[1]])


@pytest.mark.parametrize("model", [PointingModel(num_layers=0), PointingModel(grid=None)])
def test_without_attention_over_a_grid_there_is_no_result(model):
    assert measure_pointing(model, EXAMPLES) is None


def test_regions_of_pairs_are_known():
    scene = find_scene("pairs/0/1")
    example = Example("pairs/0/1", caption(scene))
    result = measure_pointing(PointingModel(), [example])
    assert result is not None and result.value == 100
