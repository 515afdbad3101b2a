"""Packages that commands must not import: they take longer than a prediction."""

import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).parents[1] / "golden" / "checkpoints" / "0.2.0"
CODE = """
import sys
from regard.cli.main import app
run, folder = sys.argv[1:]
for arguments in (
    ["show", run, "a b c"],
    ["show", run, "a b c", "--out", f"{folder}/map.svg"],
    ["predict", run, f"{folder}/sources.txt"],
):
    app(arguments, standalone_mode=False)
print(*sys.modules)
"""


def modules_after(*command):
    """Return the top-level packages and the modules that are loaded after a command."""
    done = subprocess.run([sys.executable, "-c", *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_show_and_predict_load_no_slow_packages(tmp_path):
    (tmp_path / "sources.txt").write_text("a b c\n", encoding="utf-8")
    loaded = modules_after(CODE, str(RUN), str(tmp_path))
    assert "torch" in loaded
    assert (tmp_path / "map.svg").exists()
    slow = {
        "matplotlib",
        "pandas",
        "sacrebleu",
        "scipy",
        "sklearn",
        "sympy",
        "torch._dynamo",
        "torch._inductor",
        "transformers",
    }
    assert loaded & slow == set()


def test_help_does_not_load_torch():
    code = "from regard.cli.main import app; app(['--help'], standalone_mode=False)"
    loaded = modules_after(f"{code}; import sys; print(*sys.modules)")
    assert loaded & {"torch", "numpy", "matplotlib"} == set()


def test_threads_that_wait_spin_only_briefly():
    code = "import regard, os; print(os.environ['GOMP_SPINCOUNT'])"
    assert modules_after(code) == {"1000"}
