"""Components of the page about the server under load."""

from components import Page, table
from results import Row

HEAD = (
    "batches", "connections", "sentences/s", "p50", "p95", "replies", "429", "other errors",
    "lost", "swapped", "different",
)  # fmt: skip


def serving_load(page: Page, file: str) -> str:
    """Return throughput and latency for each size of batches and number of connections.

    Args:
        page: The page.
        file: A result file; nothing but a sentence is returned if it does not exist.
    """
    value = page.value.get(file)
    if value is None:
        return "Not measured yet."
    return "\n\n".join(
        [
            f"{value['hardware']}, {value['threads']} threads; `{value['recipe']}`, "
            f"{value['sentences']:,} sentences, {value['seconds']:g} seconds each:",
            table(HEAD, [_row(one) for one in value["results"]]),
        ]
    )


def _row(result: Row) -> tuple[str, ...]:
    times = (result["latency_p50"], result["latency_p95"])
    return (
        "none" if result["batch"] == 1 else f"up to {result['batch']}",
        f"{result['connections']:,}",
        f"{result['sentences_per_second']:,.1f}",
        *("–" if time is None else f"{1e3 * time:,.0f} ms" for time in times),
        f"{result['replies']:,}",
        f"{result['busy']:,}",
        f"{sum(result['errors'].values()):,}",
        *(f"{result[name]:,}" for name in ("lost", "swapped", "different")),
    )


COMPONENTS = (serving_load,)
