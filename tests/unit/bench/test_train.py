import pytest
import torch

from regard.bench import matrix_rate, memory, train
from regard.bench.entries import Entry, list_entries
from regard.bench.peers import table
from regard.bench.settings import BenchSettings
from regard.bench.train import Result, bench_train, with_ratios
from regard.core.errors import ConfigError

CPU = torch.device("cpu")
QUICK = {
    "device": CPU,
    "sizes": ("tiny",),
    "precision": "fp32",
    "rounds": 2,
    "seconds": 0.01,
    "can_compile": False,
}


@pytest.fixture(autouse=True)
def quick_measurements(monkeypatch):
    """Measure small matrices, and no memory, which takes processes of their own."""
    monkeypatch.setattr(matrix_rate, "SQUARE", {"cpu": 16})
    monkeypatch.setattr(train, "measure_process", lambda entry, settings: 123)


def test_report_has_one_result_per_contender():
    report = bench_train(BenchSettings(**QUICK, peers=("torch",)))
    (size,) = report["sizes"]
    ours, peer = size["results"]
    assert (ours["contender"], peer["contender"]) == ("regard", "torch")
    assert ours["ratio"] == ours["tokens_per_second"] / peer["tokens_per_second"]
    assert peer["ratio"] == 1.0
    for one in (ours, peer):
        assert len(one["turns"]) == 2
        assert one["tokens_per_second"] == max(one["turns"])
        flops = one["tokens_per_second"] * size["flops_per_token"]
        assert one["flops_per_second"] == pytest.approx(flops)
        assert one["share"] == pytest.approx(flops / size["matrix_rates"]["fp32"]["model"])
        assert one["peak_bytes"] == 123
    assert peer["parameters"] == pytest.approx(ours["parameters"], rel=0.05)


def test_report_has_its_provenance():
    report = bench_train(BenchSettings(**QUICK, peers=(), seed=3))
    assert {"command", "regard", "torch", "commit", "hardware", "threads"} <= report.keys()
    assert (report["seed"], report["rounds"], report["is_padded"]) == (3, 2, False)
    (size,) = report["sizes"]
    assert (size["pairs"], size["length"], size["vocab_size"]) == (4, 5, 50)
    assert [one["ratio"] for one in size["results"]] == [None]


def test_missing_peer_is_a_result_with_the_reason(monkeypatch):
    def missing(name):
        raise table.PackageNotFoundError(name)

    monkeypatch.setattr(table, "version", missing)
    report = bench_train(BenchSettings(**QUICK, peers=("hf",)))
    ours, peer = report["sizes"][0]["results"]
    assert peer["error"] == "`transformers` is not installed."
    assert (peer["tokens_per_second"], peer["peak_bytes"]) == (0.0, None)
    assert ours["tokens_per_second"] > 0
    assert ours["ratio"] is None
    assert report["peers"] == {"hf": ""}


def test_float32_products_are_exact_during_the_benchmark_only(monkeypatch):
    seen = []
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)

    def record(name, settings):
        seen.append((torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()))
        raise ConfigError("stop")

    monkeypatch.setattr(train, "bench_size", record)
    with pytest.raises(ConfigError):
        bench_train(BenchSettings(**QUICK))
    assert seen == [(False, "highest")]
    assert torch.backends.cudnn.allow_tf32


def result(contender, precision, rate, error=""):
    return Result(contender=contender, precision=precision, tokens_per_second=rate, error=error)


def test_ratio_is_to_the_fastest_peer_of_the_same_precision():
    results = [
        result("regard", "fp32", 30.0),
        result("hf", "fp32", 20.0),
        result("torch", "fp32", 10.0),
        result("regard", "bf16", 90.0),
        result("hf", "bf16", 0.0, error="failed"),
        result("torch", "bf16", 60.0),
    ]
    assert [one.ratio for one in with_ratios(results)] == [1.5, 1.0, 0.5, 1.5, None, 1.0]


def test_entries_are_ours_and_the_peers_in_every_precision(monkeypatch):
    monkeypatch.setattr("regard.bench.settings.has_native_bf16", lambda device: True)
    entries = list_entries("small", BenchSettings(device=CPU, peers=("torch",)))
    assert entries == [
        Entry("small", contender, precision)
        for precision in ("fp32", "bf16")
        for contender in ("regard", "torch")
    ]


@pytest.mark.parametrize(("device", "size"), [("cpu", "small"), ("cuda", "base")])
def test_size_depends_on_the_device_if_not_given(device, size):
    assert BenchSettings(device=torch.device(device)).size_names == (size,)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sizes": ("large",)}, r"`--size` must be one of 'small'.*but is 'large'"),
        ({"peers": ("jax",)}, r"`--peer` must be one of 'hf', 'torch', but is 'jax'"),
        ({"rounds": 0}, r"`--rounds` must be at least 1, but is 0"),
        ({"seconds": 0.0}, r"`--seconds` must be above 0, but is 0"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        BenchSettings(device=CPU, **settings)


def test_process_grows_by_at_least_the_model_and_the_state_of_its_optimiser():
    settings = BenchSettings(**QUICK, peers=())
    peak = memory.measure_process(Entry("tiny", "regard", "fp32"), settings)
    if not memory.STATUS.exists():
        assert peak is None
        return
    assert 4 * 4 * 5_000 < peak < 2**30
