import math

import numpy as np
import torch

from regard.metrics.result import Result
from regard.tasks.evaluation import Evaluation
from regard.tasks.notebook import describe_task, results_html
from regard.tasks.prediction import MAX_PLOTTED, AttentionMap, Prediction


def attention(num_layers=2, source=("▁the", "▁<b>", "</s>"), **changes):
    weights = torch.full((num_layers, 4, 2, len(source)), 1 / len(source))
    return AttentionMap(source, ("▁das", "</s>"), weights, **changes)


def test_attention_map_is_described_without_its_tensor():
    text = repr(attention())
    assert text.startswith("AttentionMap(2 target tokens 'das </s>' × 3 source tokens 'the <b> ")
    assert text.endswith("2 layers, 4 heads, attention)")


def test_attention_map_is_a_heat_map_in_a_notebook():
    html = attention()._repr_html_()
    assert html.count('class="cell"') >= 6
    assert "<b>" not in html
    assert "&lt;b&gt;" in html


def test_map_without_layers_and_large_map_are_described_in_words():
    large = attention(source=("a",) * (MAX_PLOTTED + 1))
    for one in (attention(num_layers=0), large):
        assert "<svg" not in one._repr_html_()
        assert "AttentionMap(" in one._repr_html_()


def test_map_over_an_image_shows_the_image():
    image = np.zeros((4, 4, 3), dtype=np.uint8)
    shown = attention(source=("1,1", "1,2", "2,1", "2,2"), grid=(2, 2), image=image)
    assert "data:image/png" in shown._repr_html_()


def test_prediction_shows_its_text_and_the_probability_of_tokens():
    one = Prediction("a <b>", -0.7, ("a", "<b>"), (math.log(0.5), 0.0))
    assert repr(one) == "Prediction('a <b>', log_prob=-0.7, 2 tokens)"
    html = one._repr_html_()
    assert "0.500" in html and "&lt;b&gt;" in html and "<b>" not in html
    assert "data:image/png" in (
        Prediction("image", 0.0, (), (), image=np.zeros((4, 4, 3), np.uint8))._repr_html_()
    )
    assert "<table" not in Prediction.empty()._repr_html_()


def test_evaluation_lists_its_results():
    results = {"bleu": Result("BLEU", 37.918, "nrefs:1|case:mixed", (36.0, 40.0))}
    one = Evaluation(results=results, outputs=["a", "b"])
    assert repr(one).splitlines() == ["Evaluation of 2 examples", f"  {results['bleu']}"]
    html = one._repr_html_()
    assert "36.00 – 40.00" in html
    assert "nrefs:1 | case:mixed" in html
    assert "<table" not in results_html("None", [])


def test_task_without_a_model_section_is_described(sorting_run):
    assert describe_task(sorting_run) == {
        "task": "sorting",
        "size": "0 parameters",
        "device": "cpu",
    }


def test_task_is_described_by_its_parts(tiny_run):
    assert repr(tiny_run.predictor).startswith("<Predictor: generation, rnn → bahdanau, ")
    assert " target tokens, " in repr(tiny_run.predictor)
