"""A process that runs commands one after another, with a limit of its memory.

It reads a JSON list of arguments per line and answers each by a JSON object: exit code, standard
error, and the traceback of an unexpected error.
"""

import json
import os
import resource
import sys
import traceback
import warnings
from importlib import import_module
from pathlib import Path

PACKAGES = (
    "regard.cli.model.train",
    "regard.cli.model.predict",
    "regard.cli.model.report",
    "regard.interop.huggingface.load",
    "regard.runs.report",
    "regard.studies.compare.finished_runs",
)
"""Packages whose memory does not count."""

EXTRA_MEMORY = 2**30
"""Address space, in bytes, that commands may allocate beyond that of the imported packages."""


def limit_memory():
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + EXTRA_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(arguments):
    from typer.testing import CliRunner

    from regard.cli.main import app

    result = CliRunner().invoke(app, arguments, input="a b c\n")
    unexpected = not isinstance(result.exception, SystemExit | None)
    return {
        "code": result.exit_code,
        "err": result.stderr,
        "traceback": "".join(traceback.format_exception(result.exception)) if unexpected else "",
    }


def resample_less():
    """Resample 40 times instead of 1,000: no fault depends on it, and it takes most of the time."""
    original = import_module("regard.metrics.bootstrap").resamples

    def few(num_sentences, num_bootstrap, **options):
        return original(num_sentences, min(num_bootstrap, 40), **options)

    for name in ("bootstrap", "significance"):
        import_module(f"regard.metrics.{name}").resamples = few


def main():
    # Answers have a pipe of their own: commands print to standard output.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for name in PACKAGES:
        import_module(name)
    import_module("regard.runs.train").write_report = lambda *arguments, **options: None
    resample_less()
    warnings.simplefilter("ignore")
    limit_memory()
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(run(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
