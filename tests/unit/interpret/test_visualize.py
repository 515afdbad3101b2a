from io import StringIO

import numpy as np
import pytest
import torch
from rich.cells import cell_len
from rich.console import Console

from regard.core.errors import ConfigError
from regard.interpret.visualization import OutputTokens, Visualization
from regard.interpret.visualize import visualize, visualize_attribution
from regard.plots.inputs import resize_image
from regard.plots.overlay import overlay
from regard.tasks.attention_plots import attention_tiles
from regard.tasks.prediction import AttentionMap

IMAGE = np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8)


@pytest.fixture
def fields():
    torch.manual_seed(0)
    source = tuple(f"cell {number}" for number in range(12))
    weights = torch.rand(2, 4, 2, 12)
    return {"source": source, "target": ("▁dog", "<eos>"), "weights": weights}


def test_each_token_is_plotted_by_the_mean_of_layers_and_heads(fields):
    image, *tokens = attention_tiles(AttentionMap(**fields, grid=(3, 4), image=IMAGE))
    assert (image.image == resize_image(IMAGE)).all()
    assert [tile.caption for tile in tokens] == ["dog", "<eos>"]
    for number, tile in enumerate(tokens):
        mean = sum(fields["weights"][n, h, number] for n in range(2) for h in range(4)) / 8
        grid = [[float(mean[4 * row + column]) for column in range(4)] for row in range(3)]
        assert abs(tile.image.astype(int) - overlay(IMAGE, grid)).max() <= 1


def test_without_attention_there_is_only_the_image(fields):
    fields["weights"] = torch.zeros(0, 1, 2, 12)
    (tile,) = attention_tiles(AttentionMap(**fields, grid=(3, 4), image=IMAGE))
    assert (tile.image == resize_image(IMAGE)).all()


def test_without_grid_there_is_only_the_image(fields):
    assert len(attention_tiles(AttentionMap(**fields, image=IMAGE))) == 1


def test_texts_have_no_tiles(fields):
    assert attention_tiles(AttentionMap(**fields)) == []


def test_prediction_is_plotted_and_saved(tiny_run, tmp_path):
    plots = visualize(tiny_run.predictor, "a b c")
    assert plots.lines == tuple(tiny_run.predictor.translate(["a b c"]))
    assert plots.save(tmp_path / "map.svg") == [tmp_path / "map.svg"]
    console = Console(file=StringIO(), width=80)
    plots.print(console)
    assert "<eos>" in console.file.getvalue()


def test_columns_of_alternatives_are_aligned_in_scripts_with_wide_characters_and_marks():
    found = OutputTokens(("青い家", "▁ที่นี่", "a"), (-1.0,) * 3, ((("b", -1.0),),) * 3)
    assert len({cell_len(line.partition("│")[0]) for line in found.lines()}) == 1


def test_heading_of_a_page_is_short_and_its_facts_have_the_whole_output():
    text = " ".join(["word"] * 200)
    page = Visualization(text, facts={"output": text}).page()
    heading = page.partition("</h1>")[0].rpartition("<h1")[2]
    assert len(heading) < 150 and heading.endswith("…")
    assert f"{text}</dd>" in page


def test_maps_of_methods_stand_below_each_other_if_they_are_wide(tiny_run):
    for source, columns in (("a b", 2), (" ".join("abcabc" * 5), 1)):
        found = visualize_attribution(tiny_run.predictor, source, methods=["attention", "erasure"])
        assert found.columns == columns


def test_model_without_attention_has_nothing_to_plot(tiny_run_without_attention):
    with pytest.raises(ConfigError, match="has no attention, so there is no map"):
        visualize(tiny_run_without_attention.predictor, "a b c")
