"""`regard bench`: measure the speed of training and decoding against other implementations."""

from typing import Annotated, Any

import typer

from regard.cli.commands import Command, Group
from regard.cli.completion import complete_data, complete_run
from regard.cli.options import Device, Json, OutFile, Seed
from regard.cli.output import output_to, print_json, print_table

app = typer.Typer(help="Measure speed against other implementations.", cls=Group)


@app.callback()
def bench() -> None:
    """Measure speed against other implementations."""


@app.command("train", cls=Command)
def train(
    size: Annotated[
        str,
        typer.Option(
            help="small, base, bahdanau2015 or gehring2017, several with commas; base on a GPU, "
            "small on a CPU if not given."
        ),
    ] = "",
    peer: Annotated[
        str, typer.Option(help="Peers to compare with, with commas: hf, torch; or none.")
    ] = "hf,torch",
    precision: Annotated[
        str, typer.Option(help="fp32, bf16, or auto: fp32, and bf16 where it is native.")
    ] = "auto",
    rounds: Annotated[int, typer.Option(help="Turns of each contender; the fastest counts.")] = 5,
    seconds: Annotated[float, typer.Option(help="Approximate time of each turn.")] = 3.0,
    padded: Annotated[
        bool, typer.Option("--padded", help="Sentences of different lengths in a batch.")
    ] = False,
    compile_: Annotated[
        bool, typer.Option("--compile/--no-compile", help="Whether models may be compiled.")
    ] = True,
    as_json: Json = False,
    out: OutFile = None,
    seed: Seed = 1,
    device: Device = "auto",
) -> None:
    """Measure the throughput of training against other implementations.

    All contenders train a model of the same size on the same random batches, in turns. The
    throughput is in target tokens per second, without padding. A peer that is not installed or
    fails is listed with the reason.
    """
    from typing import get_args

    from regard.bench.settings import BenchSettings
    from regard.bench.train import bench_train
    from regard.core.device import Precision, find_device
    from regard.core.tables import pick

    pick(dict.fromkeys(get_args(Precision)), precision, "--precision")
    settings = BenchSettings(
        device=find_device(device),
        sizes=_names(size),
        peers=() if peer == "none" else _names(peer),
        precision=precision,  # type: ignore[arg-type]
        rounds=rounds,
        seconds=seconds,
        seed=seed,
        is_padded=padded,
        can_compile=compile_,
    )
    report = bench_train(settings)
    with output_to(out):
        if as_json:
            print_json(report)
        else:
            _print(report)


@app.command("decode", cls=Command)
def decode(
    run: Annotated[
        str, typer.Argument(help="A run folder.", autocompletion=complete_run, show_default=False)
    ] = "",
    data: Annotated[
        list[str] | None,
        typer.Argument(
            help="A data set or files of pairs; the test set of the run if not given.",
            autocompletion=complete_data,
        ),
    ] = None,
    peer: Annotated[
        str, typer.Option(help="Peers, with commas: hf, ctranslate2, loop; or none.")
    ] = "hf,ctranslate2,loop",
    beam: Annotated[str, typer.Option(help="Numbers of beams, with commas; 1 is greedy.")] = "1,5",
    batch: Annotated[int, typer.Option(help="Maximum number of sentences in a batch.")] = 64,
    sentences: Annotated[int, typer.Option(help="Maximum number of sentences.")] = 1000,
    precision: Annotated[
        str, typer.Option(help="Precisions of the search, with commas: fp32, bf16, int8 or auto.")
    ] = "fp32",
    rounds: Annotated[int, typer.Option(help="Turns of each contender; the fastest counts.")] = 3,
    batch_mates: Annotated[
        int,
        typer.Option(
            help="Number of sentences decoded in batches and alone, to compare their outputs."
        ),
    ] = 0,
    as_json: Json = False,
    out: OutFile = None,
    device: Device = "auto",
) -> None:
    """Measure the speed of decoding of a translation run against other implementations.

    All contenders decode the same sentences with the same weights, in turns: sentences per
    second, latency of a sentence alone, BLEU and peak memory. A peer that is not installed or
    cannot represent the run is listed with the reason.
    """
    from pathlib import Path

    from regard.bench.decode.bench import bench_decode
    from regard.bench.decode.settings import DecodeSettings
    from regard.cli.analysis.bench_decode import print_decode
    from regard.core.device import find_device
    from regard.core.errors import ConfigError

    if not run:
        raise ConfigError(
            "`regard bench decode` needs a run of translation. Train one: "
            "`regard train multi30k --recipe vaswani2017-small --out runs/small`."
        )
    settings = DecodeSettings(
        run=Path(run),
        device=find_device(device),
        data=tuple(data or ()),
        peers=() if peer == "none" else _names(peer),
        beams=[_to_int("--beam", name) for name in _names(beam)],
        batch=batch,
        sentences=sentences,
        precisions=_names(precision),
        rounds=rounds,
        batch_mates=batch_mates,
    )
    report = bench_decode(settings)
    with output_to(out):
        if as_json:
            print_json(report)
        else:
            print_decode(report)


@app.command("serve", cls=Command)
def serve(
    run: Annotated[
        str, typer.Argument(help="A run folder.", autocompletion=complete_run, show_default=False)
    ] = "",
    connections: Annotated[
        str, typer.Option(help="Numbers of connections, with commas.")
    ] = "1,64,1000",
    batch: Annotated[
        str, typer.Option(help="Maximum numbers of sources in a batch, with commas; 1 = none.")
    ] = "1,64",
    seconds: Annotated[float, typer.Option(help="Time of each measurement.")] = 10.0,
    sentences: Annotated[int, typer.Option(help="Maximum number of sentences.")] = 1000,
    as_json: Json = False,
    out: OutFile = None,
    device: Device = "auto",
) -> None:
    """Measure `regard serve` under load: sentences per second and latency.

    The server runs on this machine, in a process of its own. Each connection sends a sentence of
    the test set, waits for its prediction and sends the next one. Predictions are compared with
    those of `regard predict`.
    """
    from pathlib import Path

    from regard.bench.serve.bench import ServeSettings, bench_serve
    from regard.core.errors import ConfigError

    if not run:
        raise ConfigError(
            "`regard bench serve` needs a run that translates. Train one: "
            "`regard train multi30k --recipe vaswani2017-small --out runs/small`."
        )
    settings = ServeSettings(
        run=Path(run),
        connections=[_to_int("--connections", name) for name in _names(connections)],
        batches=[_to_int("--batch", name) for name in _names(batch)],
        seconds=seconds,
        sentences=sentences,
        device=device,
    )
    report = bench_serve(settings)
    with output_to(out):
        if as_json:
            print_json(report)
        else:
            _print_serve(report)


def _print_serve(report: dict[str, Any]) -> None:
    print(f"{report['hardware']}, {report['threads']} threads, torch {report['torch']}")
    print(f"\n{report['run']}: {report['sentences']:,} sentences, {report['seconds']:g} s each")
    print_table(SERVE_HEAD, [_serve_row(result) for result in report["results"]])


SERVE_HEAD = ("batch", "connections", "sentences/s", "p50", "p95", "busy", "errors", "different")


def _serve_row(result: dict[str, Any]) -> tuple[str, ...]:
    times = (result["latency_p50"], result["latency_p95"])
    failed = sum(result["errors"].values()) + result["lost"] + result["swapped"]
    return (
        f"{result['batch']}",
        f"{result['connections']:,}",
        f"{result['sentences_per_second']:,.1f}",
        *("–" if time is None else f"{1e3 * time:,.1f} ms" for time in times),
        f"{result['busy']:,}",
        f"{failed:,}",
        f"{result['different']:,}",
    )


def _to_int(option: str, given: str) -> int:
    from regard.core.errors import ConfigError

    try:
        return int(given)
    except ValueError:
        raise ConfigError(
            f"`{option}` must be whole numbers with commas, but has '{given}'."
        ) from None


def _names(given: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in given.split(",") if name.strip())


def _print(report: dict[str, Any]) -> None:
    print(f"{report['hardware']}, {report['threads']} threads, torch {report['torch']}")
    for one in report["sizes"]:
        print(
            f"\n{one['size']}: {one['pairs']:,} pairs of "
            f"{'up to ' if report['is_padded'] else ''}{one['length']} tokens a step, "
            f"{one['flops_per_token'] / 1e6:,.0f} MFLOP per target token"
        )
        for precision, rates in one["matrix_rates"].items():
            model, square = (_rate(rates[name]) for name in ("model", "square"))
            print(f"matrix products in {precision}: {model}; of large square matrices: {square}")
        print_table(HEAD, [_row(result) for result in one["results"]])
        for result in one["results"]:
            if remark := result["error"] or result["note"]:
                print(f"{result['contender']} {result['precision']}: {remark}")


HEAD = ("contender", "", "tokens/s", "ratio", "rate", "share", "memory", "compiled in")


def _row(result: dict[str, Any]) -> tuple[str, ...]:
    name, precision = result["contender"], result["precision"]
    if result["error"]:
        return (name, precision, *["–"] * 6)
    ratio, peak = result["ratio"], result["peak_bytes"]
    return (
        name,
        precision,
        f"{result['tokens_per_second']:,.0f}",
        "–" if ratio is None else f"{ratio:.2f}",
        _rate(result["flops_per_second"]),
        f"{100 * result['share']:.0f} %",
        "–" if peak is None else f"{peak / 2**30:.2f} GiB",
        f"{result['compile_seconds']:.1f} s",
    )


def _rate(flops: float) -> str:
    return f"{flops / 1e12:,.1f} TFLOP/s" if flops >= 1e12 else f"{flops / 1e9:,.1f} GFLOP/s"
