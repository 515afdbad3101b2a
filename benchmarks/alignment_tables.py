"""Components of the page about word alignments."""

from statistics import mean

from components import Page, by_name, cell, first_runs, table
from results import Row, read_results

GOLD_SETS = {"jaen": "Japanese–English", "roen": "Romanian–English"}
DOMAINS = {"test": "test (EM links)", "gold": "gold"}


def alignment_scores(page: Page) -> str:
    """Return error rates of the attention of each model, mean over seeds."""
    rows = []
    for name, runs in by_name(page.select()).items():
        first = runs[0]["alignment"]
        for step in ("output", "input"):
            found = [run["alignment"][step] for run in runs]
            best = ", ".join(dict.fromkeys(one["best"]["name"] for one in found))
            rates = [_mean(found, "best", key) for key in ("aer", "precision", "recall")]
            unknown = first["unknown_share"]
            rows.append(
                (
                    name,
                    step,
                    _mean(found, "mean", "aer"),
                    best,
                    *rates,
                    f"{100 * unknown['source']:.1f} / {100 * unknown['target']:.1f}",
                    cell(runs, "bleu"),
                )
            )
    head = ("model", "step", "AER, mean of heads", "selected head", "AER", "precision", "recall")
    return table((*head, "unknown % ja / en", "BLEU"), rows)


def _mean(found: list[Row], kind: str, key: str) -> str:
    return f"{mean(one[kind][key] for one in found):.3f}"


def em_table(page: Page) -> str:
    """Return error rates of expectation maximisation, on all gold pairs and on the second half."""
    rows = [
        (
            GOLD_SETS[one["set"]],
            one["trained_on"],
            one["links"],
            *(f"{one['all'][key]:.3f}" for key in ("aer", "precision", "recall")),
            f"{one['report']['aer']:.3f}",
        )
        for one in page.value["em"]
    ]
    head = ("gold set", "estimated on", "links", "AER", "precision", "recall", "AER, second half")
    return table(head, rows)


def dropped_links(page: Page) -> str:
    """Return the gold links that were dropped because they are outside their pair."""
    parts = []
    for one in page.value["em"]:
        if one.get("dropped"):
            listed = "; ".join(one["dropped"])
            parts.append(
                f"{len(one['dropped'])} gold links of {GOLD_SETS[one['set']]} point outside their "
                f"pair and were dropped (counted from 0): {listed}."
            )
    return "\n\n".join(parts)


def alignment_heads(page: Page) -> str:
    """Return the error rate of every head of the first run of each model, output step."""
    runs = [
        run for run in first_runs(page.select()) if len(run["alignment"]["output"]["heads"]) > 1
    ]
    names = list(runs[0]["alignment"]["output"]["heads"]) if runs else []
    rows = [
        (name, *(f"{run['alignment']['output']['heads'][name]['aer']:.3f}" for run in runs))
        for name in names
    ]
    return table(("attention", *(run["name"] for run in runs)), rows)


def alignment_domains(page: Page, file: str) -> str:
    """Return error rates on test pairs and on gold pairs by length, from another result file."""
    rows = []
    for run in first_runs(read_results(page.folder / file)["runs"]):
        for one in run["by_domain"]:
            unknown = one["unknown"]
            rows.append(
                (
                    run["name"],
                    DOMAINS[one["set"]],
                    one["words"],
                    one["pairs"],
                    *(f"{one[kind]['aer']:.3f}" for kind in ("model", "diagonal", "random")),
                    f"{100 * unknown['source']:.1f} / {100 * unknown['target']:.1f}",
                )
            )
    head = ("model", "pairs", "words", "number", "AER", "diagonal", "random", "unknown % ja / en")
    return table(head, rows)


def chance_levels(page: Page, file: str) -> str:
    """Return the error rates of links without a model on all gold pairs, as a sentence."""
    rows = read_results(page.folder / file)["runs"][0]["by_domain"]
    found = next(one for one in rows if (one["set"], one["words"]) == ("gold", "all"))
    random, diagonal = (f"{found[kind]['aer']:.3f}" for kind in ("random", "diagonal"))
    return f"Random links have an AER of {random} and the diagonal {diagonal} on all pairs."


def domain_bleu(page: Page, file: str) -> str:
    """Return the test BLEU of the first run of another result file."""
    return (
        f"{read_results(page.folder / file)['runs'][0]['test']['scores']['bleu']['value']:.1f} BLEU"
    )


COMPONENTS = (
    chance_levels,
    domain_bleu,
    alignment_domains,
    alignment_scores,
    em_table,
    dropped_links,
    alignment_heads,
)
