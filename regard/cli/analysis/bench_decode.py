"""Text output of `regard bench decode`."""

from typing import Any

from regard.cli.output import print_table

HEAD = ("contender", "beams", "sentences/s", "tokens/s", "ratio", "BLEU", "equal")
HEAD_ALONE = ("contender", "p50", "p95", "memory")
NONE = "–"


def print_decode(report: dict[str, Any]) -> None:
    """Print the results of a benchmark of decoding."""
    print(f"{report['hardware']}, {report['threads']} threads, torch {report['torch']}")
    print(f"\n{report['run']}: {report['sentences']:,} sentences in batches of {report['batch']}")
    print_table(HEAD, [row for one in report["results"] for row in _throughput(one)])
    print(f"\n{report['alone']} sentences alone with {report['latency_beams']} beams")
    print_table(HEAD_ALONE, [_latency(one) for one in report["results"]])
    for one in report["results"]:
        if one["error"]:
            print(f"{_name(one)}: {one['error']}")
    for one in report["batch_mates"]:
        print(
            f"{_name(one)}, {one['beams']} {'beam' if one['beams'] == 1 else 'beams'}: "
            f"{len(one['changed'])} of {one['sentences']:,} outputs differ in a batch and alone, "
            f"{one['num_beyond']} with a margin above {report['max_margin']:g}"
        )
        for changed in one["changed"]:
            print(f"{changed['margin']:.2g}", changed["batched"], changed["alone"], sep="\t")


def _name(result: dict[str, Any]) -> str:
    return f"{result['contender']} {result['precision']}"


def _throughput(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return a row for each number of beams."""
    if result["error"]:
        return [(_name(result), *[NONE] * (len(HEAD) - 1))]
    return [
        (
            _name(result),
            str(one["beams"]),
            f"{one['sentences_per_second']:,.1f}",
            f"{one['tokens_per_second']:,.0f}",
            NONE if one["ratio"] is None else f"{one['ratio']:.2f}",
            f"{one['bleu']:.2f}",
            f"{100 * one['equal']:.1f} %",
        )
        for one in result["searches"]
    ]


def _latency(result: dict[str, Any]) -> tuple[str, ...]:
    """Return the row of latency and memory."""
    if result["error"]:
        return (_name(result), *[NONE] * (len(HEAD_ALONE) - 1))
    times = (f"{1e3 * result[key]:.1f} ms" for key in ("latency_p50", "latency_p95"))
    peak = result["peak_bytes"]
    return (_name(result), *times, NONE if peak is None else f"{peak / 2**20:,.0f} MiB")
