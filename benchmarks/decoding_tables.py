"""Components of the page about the speed of decoding."""

from components import Page, table
from results import Row

HEAD = ("contender", "beams", "sentences/s", "tokens/s", "ratio", "BLEU", "equal outputs")
HEAD_FIXED = ("recipe", "precision", "beams", "batch", "tokens/s", "before", "goal")
HEAD_ALONE = ("contender", "p50", "p95", "peak memory")


def decoding_against_peers(page: Page, file: str) -> str:
    """Return throughput, quality, latency and memory of all contenders, for each run.

    Args:
        page: The page.
        file: A result file; nothing but a sentence is returned if it does not exist.
    """
    value = page.value.get(file)
    if value is None:
        return "Not measured yet."
    parts = [f"{value['hardware']}, {value['threads']} threads"]
    for report in value["reports"]:
        measured = [one for one in report["results"] if not one["error"]]
        parts += [
            f"### {report['recipe'] or report['run']}",
            f"{report['sentences']:,} sentences in batches of {report['batch']}:",
            table(HEAD, [row for one in measured for row in _throughput(one)]),
            f"{report['alone']} sentences alone with {report['latency_beams']} beams:",
            table(HEAD_ALONE, [_latency(one) for one in measured]),
        ]
        remarks = [f"- {_name(one)}: {one['error']}" for one in report["results"] if one["error"]]
        remarks += [_mates(one, report["max_margin"]) for one in report["batch_mates"]]
        parts += ["\n".join(remarks)] * bool(remarks)
    if "fixed" in value:
        parts += [
            "### Outputs of 32 tokens",
            f"Random weights, sources of 24 tokens, from token ids to token ids: "
            f"`{value['fixed']['command']}`.",
            table(HEAD_FIXED, [_fixed(one) for one in value["fixed"]["rows"]]),
        ]
    if "note" in value:
        parts.append(f"{value['note']}.")
    return "\n\n".join(parts)


def _name(result: Row) -> str:
    return f"{result['contender']} {result['precision']}"


def _throughput(result: Row) -> list[tuple[str, ...]]:
    """Return a row for each number of beams."""
    return [
        (
            _name(result),
            f"{one['beams']}",
            f"{one['sentences_per_second']:,.1f}",
            f"{one['tokens_per_second']:,.0f}",
            "–" if one["ratio"] is None else f"{one['ratio']:.2f}",
            f"{one['bleu']:.2f}",
            f"{100 * one['equal']:.1f} %",
        )
        for one in result["searches"]
    ]


def _latency(result: Row) -> tuple[str, ...]:
    """Return the row of latency and memory."""
    times = (f"{1e3 * result[key]:.1f} ms" for key in ("latency_p50", "latency_p95"))
    peak = result["peak_bytes"]
    return (_name(result), *times, "–" if peak is None else f"{peak / 2**20:,.0f} MiB")


def _fixed(one: Row) -> tuple[str, ...]:
    """Return the row of a measurement with outputs of a fixed length."""
    speeds = (one.get(key) for key in ("tokens_per_second", "before", "goal"))
    return (
        f"`{one['recipe']}`",
        one["precision"],
        f"{one['beams']}",
        f"{one['batch']}",
        *("" if speed is None else f"{speed:,}" for speed in speeds),
    )


def _mates(one: Row, max_margin: float) -> str:
    """Return how many outputs depend on the other sentences of their batch."""
    beams = "1 beam" if one["beams"] == 1 else f"{one['beams']} beams"
    return (
        f"- {_name(one)}, {beams}: {len(one['changed'])} of {one['sentences']:,} outputs differ in "
        f"a batch and alone, {one['num_beyond']} with a margin above {max_margin:g}"
    )


COMPONENTS = (decoding_against_peers,)
"""Functions that the page calls."""
