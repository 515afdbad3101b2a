"""All contenders of decoding give equal outputs; ratios, latencies, and changed sentences."""

import math
from dataclasses import replace

import pytest
import torch

from regard.bench import memory
from regard.bench.decode import bench
from regard.bench.decode.batch_mates import find_changed
from regard.bench.decode.bench import DecodeResult, SearchResult, bench_decode, spread, with_ratios
from regard.bench.decode.contender import Entry, list_entries, load_run
from regard.bench.decode.peers import table
from regard.bench.decode.peers.huggingface import HuggingFacePredictor
from regard.bench.decode.peers.loop import LoopPredictor
from regard.bench.decode.settings import DecodeSettings
from regard.cli.analysis.bench_decode import print_decode
from regard.core.errors import ConfigError, RegardError
from regard.data.text.field import both_sides
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer
from regard.models.build import ModelConfig
from regard.models.decoders.bahdanau import BahdanauDecoderConfig
from regard.models.decoders.luong import LuongDecoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.runs.saved import precision
from regard.search.settings import SearchConfig
from regard.tasks.generation.recipe import DataConfig, Recipe
from regard.tasks.generation.task import Predictor
from regard.tasks.prediction import Prediction

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def quick_measurements(monkeypatch, tmp_path):
    """Measure no memory, which takes processes of their own; convert into an empty cache."""
    monkeypatch.setattr(bench, "measure_process", lambda entry, settings: 123)
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def checked_run(tiny_run, checked_folder):
    """A copy of the tiny run, whose folder may change."""
    return replace(tiny_run, folder=checked_folder)


def settings(run, **changes):
    values = {"device": CPU, "batch": 4, "rounds": 2, "sentences": 12, **changes}
    return DecodeSettings(run=run.folder, **values)


def test_all_contenders_of_a_transformer_have_equal_bleu(tiny_transformer_run):
    for package in ("transformers", "ctranslate2"):
        pytest.importorskip(package)
    report = bench_decode(settings(tiny_transformer_run, peers=("hf", "ctranslate2")))
    assert (report["sentences"], report["batch"], report["rounds"]) == (12, 4, 2)
    results = {(one["contender"], one["precision"]): one for one in report["results"]}
    assert list(results) == [
        ("regard", "fp32"), ("hf", "fp32"), ("ctranslate2", "fp32"), ("ctranslate2", "int8"),
    ]  # fmt: skip
    ours = results["regard", "fp32"]
    for (_, name), one in results.items():
        assert one["error"] == ""
        assert [search["beams"] for search in one["searches"]] == [1, 5]
        for search, mine in zip(one["searches"], ours["searches"], strict=True):
            assert len(search["turns"]) == 2
            assert search["sentences_per_second"] == 12 / min(search["turns"])
            assert search["tokens_per_second"] > search["sentences_per_second"]
            if name == "fp32":
                assert (search["bleu"], search["equal"]) == (mine["bleu"], 1.0)
        assert 0 < one["latency_p50"] <= one["latency_p95"]
        assert one["peak_bytes"] == 123
    assert ours["searches"][0]["bleu"] > 50


def test_plain_loop_has_equal_outputs_and_engines_name_their_reasons(tiny_run):
    report = bench_decode(settings(tiny_run, rounds=1))
    results = {(one["contender"], one["precision"]): one for one in report["results"]}
    assert "must be 'transformer', but is 'rnn'" in results["hf", "fp32"]["error"]
    assert "must be 'transformer', but is 'rnn'" in results["ctranslate2", "int8"]["error"]
    ours, loop = results["regard", "fp32"], results["loop", "fp32"]
    for mine, search in zip(ours["searches"], loop["searches"], strict=True):
        assert (search["bleu"], search["equal"]) == (mine["bleu"], 1.0)
        assert search["ratio"] == 1.0
        ratio = mine["sentences_per_second"] / search["sentences_per_second"]
        assert mine["ratio"] == pytest.approx(ratio)


def recurrent_task(decoder, **encoder):
    tokenizer = train_tokenizer(TokenizerConfig(kind="char"), ["abcde"])
    model = ModelConfig(
        encoder=RnnEncoderConfig(embedding_dim=6, dim=8, **encoder), decoder=decoder
    )
    recipe = Recipe(model=model, data=DataConfig(is_joint=True))
    task = Predictor.from_scratch(recipe, {**both_sides(tokenizer)}, device=CPU)
    with torch.no_grad():
        for parameter in task.model.parameters():
            parameter.normal_()
    return task


LUONG = LuongDecoderConfig(cell="lstm", num_layers=2, embedding_dim=6, dim=8)


@pytest.mark.parametrize("beams", [1, 4])
@pytest.mark.parametrize(
    ("decoder", "encoder"),
    [
        (LUONG, {"cell": "lstm", "num_layers": 2}),
        (replace(LUONG, is_input_fed=False, cell="gru"), {"cell": "gru"}),
        (
            BahdanauDecoderConfig(embedding_dim=6, dim=10, attention_dim=7),
            {"is_bidirectional": True},
        ),
    ],
)
def test_plain_loop_equals_our_search_with_random_weights(decoder, encoder, beams):
    task = recurrent_task(decoder, **encoder)
    search = SearchConfig(beams=beams, max_extra=3, length_penalty=0.7)
    sources = ["abcde", "e", "bca", "ddddddd"]
    ours = task.predict(sources, search=search)
    for mine, plain in zip(
        ours, LoopPredictor.of(task).predict(sources, search=search), strict=True
    ):
        assert plain[0].tokens == mine[0].tokens
        assert plain[0].log_prob == pytest.approx(mine[0].log_prob, abs=1e-4)
        assert plain[0].token_log_probs == ()  # Not those of our search.


def test_hugging_face_generates_the_outputs(tiny_transformer_run):
    pytest.importorskip("transformers")
    task = tiny_transformer_run.predictor
    other = HuggingFacePredictor.of(task, tiny_transformer_run.folder)
    search = replace(task.search, beams=3, max_ratio=0.5, max_extra=2)
    (found,) = other.predict(["a b c d"], search=search, num_best=2)
    assert len(found) == 2 and all(len(one.tokens) <= 4 for one in found)
    assert math.isnan(found[0].log_prob)  # Not that of our search.


def test_plain_loop_refuses_other_decoders(tiny_transformer_run):
    with pytest.raises(RegardError, match="but not an encoder 'transformer'"):
        LoopPredictor.of(tiny_transformer_run.predictor)
    with pytest.raises(RegardError, match="but not an encoder 'rnn' with this decoder 'luong'"):
        LoopPredictor.of(recurrent_task(replace(LUONG, span="local_m"), cell="lstm"))


def test_missing_packages_and_precisions_are_listed(tiny_run, monkeypatch):
    def missing(name):
        raise table.PackageNotFoundError(name)

    monkeypatch.setattr(table, "version", missing)
    chosen = settings(tiny_run, peers=("hf",), precisions=("fp32", "bf16"), beams=(1,), rounds=1)
    results = bench_decode(chosen)["results"]
    errors = {(one["contender"], one["precision"]): one["error"] for one in results}
    assert errors["regard", "fp32"] == ""
    assert errors["hf", "fp32"] == errors["hf", "bf16"] == "`transformers` is not installed."


def test_peers_are_measured_in_their_own_precisions(tiny_run):
    chosen = settings(tiny_run, precisions=("fp32", "bf16"))
    assert list_entries(chosen, load_run(chosen)) == [
        Entry("regard", "fp32"), Entry("regard", "bf16"),
        Entry("hf", "fp32"), Entry("hf", "bf16"),
        Entry("ctranslate2", "fp32"), Entry("ctranslate2", "bf16"), Entry("ctranslate2", "int8"),
        Entry("loop", "fp32"),
    ]  # fmt: skip


def test_auto_is_listed_with_the_precision_that_is_used(checked_run, monkeypatch, capsys):
    monkeypatch.setattr(
        precision,
        "measure",
        lambda task, examples: {
            "fp32": {"sentences_per_second": 1.0, "bleu": 30.0},
            "bf16": {"sentences_per_second": 2.0, "bleu": 30.0},
        },
    )
    chosen = settings(
        checked_run, peers=("loop",), precisions=("auto",), beams=(1,), rounds=1, batch_mates=2
    )
    assert list_entries(replace(chosen, peers=("hf",)), load_run(chosen)) == [
        Entry("regard", "bf16", is_auto=True), Entry("hf", "fp32"), Entry("hf", "bf16"),
    ]  # fmt: skip
    report = bench_decode(chosen)
    ours = report["results"][0]
    assert (ours["precision"], ours["used"], ours["error"]) == ("auto (bf16)", "bf16", "")
    assert report["batch_mates"][0]["precision"] == "auto (bf16)"
    print_decode(report)
    assert "regard auto (bf16)" in capsys.readouterr().out


def test_auto_is_compared_with_peers_of_the_precision_that_is_used():
    def result(contender, precision, used, speed):
        search = SearchResult(
            beams=1,
            sentences_per_second=speed,
            tokens_per_second=speed,
            turns=(1.0,),
            bleu=0.0,
            equal=1.0,
        )
        return DecodeResult(contender=contender, precision=precision, used=used, searches=[search])

    ours, *_ = with_ratios(
        [
            result("regard", "auto (bf16)", "bf16", 6.0),
            result("hf", "fp32", "fp32", 1.0),
            result("hf", "bf16", "bf16", 2.0),
        ]
    )
    assert ours.searches[0].ratio == 3.0


def test_batches_have_the_given_number_of_sentences(tiny_run):
    task = load_run(settings(tiny_run, batch=7))
    sizes = []
    encode = task.encode_batch
    task.encode_batch = lambda batch: sizes.append(len(batch.rows)) or encode(batch)
    task.predict(["a b"] * 20)
    assert sorted(sizes) == [6, 7, 7]


def search_result(beams, rate):
    return SearchResult(
        beams=beams, sentences_per_second=rate, tokens_per_second=1.0, turns=(1.0,), bleu=1.0,
        equal=1.0,
    )  # fmt: skip


def test_ratio_is_to_the_fastest_peer_of_the_same_precision_and_beams():
    def result(contender, precision, *rates):
        searches = [search_result(beams, rate) for beams, rate in zip((1, 5), rates, strict=False)]
        return DecodeResult(contender=contender, precision=precision, searches=searches)

    results = with_ratios(
        [
            result("regard", "fp32", 30.0, 6.0),
            result("regard", "bf16", 50.0),
            result("hf", "fp32", 10.0, 4.0),
            result("ctranslate2", "fp32", 20.0, 2.0),
        ]
    )
    ratios = [[search.ratio for search in one.searches] for one in results]
    assert ratios == [[1.5, 1.5], [None], [0.5, 1.0], [1.0, 0.5]]


def test_items_are_spread_evenly():
    assert spread(list(range(10)), 5) == [0, 2, 4, 6, 8]
    assert spread([1, 2], 5) == [1, 2]


class Decoder:
    """A contender whose output of one source depends on the size of the batch."""

    def __init__(self, batched, alone):
        self.batched, self.alone = batched, alone

    def decode(self, sources, beams):
        others = self.alone if len(sources) == 1 else self.batched
        return [others if one == "b" else Prediction("x", 0.0, ("x",), (0.0,)) for one in sources]


def test_changed_sentences_have_the_margins_of_scores_and_next_tokens():
    batched = Prediction("p q", -3.0, ("p", "q", "e"), (-1.0, -1.5, -0.5))
    alone = Prediction("p r", -2.0, ("p", "r"), (-1.0, -1.2))
    (changed,) = find_changed(Decoder(batched, alone), ["a", "b"], beams=5, length_penalty=2.0)
    assert (changed.source, changed.batched, changed.alone) == ("b", "p q", "p r")
    assert changed.score_margin == pytest.approx(abs(-3 / 9 + 2 / 4))
    assert changed.token_margin == pytest.approx(0.3)
    assert changed.margin == changed.score_margin


def test_output_does_not_depend_on_batch_mates(tiny_run):
    report = bench_decode(settings(tiny_run, peers=(), batch_mates=8, rounds=1))
    mates = report["batch_mates"]
    assert [(one["contender"], one["beams"], one["sentences"]) for one in mates] == [
        ("regard", 1, 8), ("regard", 5, 8),
    ]  # fmt: skip
    assert [one["changed"] for one in mates] == [[], []]


def test_runs_without_text_are_refused(task_run):
    with pytest.raises(ConfigError, match="the task of .+ is 'classification'"):
        bench_decode(settings(task_run("classification")))


def test_process_grows_by_at_least_the_model(tiny_run, monkeypatch):
    if not memory.STATUS.exists():
        pytest.skip("the system does not report the memory of a process")
    monkeypatch.undo()
    chosen = settings(tiny_run, sentences=4, beams=(1,))
    peak = bench.measure_process(Entry("regard", "fp32"), chosen)
    assert peak > 4 * tiny_run.predictor.num_parameters
