"""Rules of this package that a linter does not check; `make check` checks imports of packages."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "regard"
FILES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 400


def relative(path):
    return path.relative_to(PACKAGE).as_posix()


def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(tree):
    """Dotted names of everything a piece of code imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def mentioned(tree):
    """Dotted names of everything a piece of code imports or takes from a module."""
    yield from imported(tree)
    yield from (ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute))


def functions(tree):
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return (node for node in ast.walk(tree) if isinstance(node, kinds))


def is_within(name, module):
    return name == module or name.startswith(f"{module}.")


def users(*modules):
    """The files that use one of the modules."""
    return {
        relative(path)
        for path in FILES
        if any(is_within(name, module) for name in mentioned(parse(path)) for module in modules)
    }


def optional_packages():
    """Packages that only an extra installs, under the names they are imported by."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {
        requirement
        for extra, requirements in project["optional-dependencies"].items()
        if extra != "dev"
        for requirement in requirements
    }
    return {re.split(r"[^\w-]", requirement)[0].replace("-", "_") for requirement in extras}


def test_package_is_found():
    assert "core/errors.py" in map(relative, FILES)


def test_command_line_library_is_used_in_cli_only():
    assert {name for name in users("typer", "click") if not name.startswith("cli/")} == set()


def test_web_framework_is_used_in_serve_only():
    used = users("fastapi", "starlette", "uvicorn")
    assert {name for name in used if not name.startswith("serve/")} == set()


def test_distributed_communication_is_in_one_package_only():
    used = users("torch.distributed")
    assert {name for name in used if not name.startswith("training/distributed/")} == set()


def test_nothing_is_pickled_or_unpickled():
    names = ("pickle", "_pickle", "cPickle", "shelve", "joblib", "dill", "cloudpickle", "marshal")
    functions = (
        "torch.save",
        "torch.load",
        "torch.jit.load",
        "torch.package",
        "pandas.read_pickle",
    )
    assert users(*names, *functions) == set()


def test_no_text_is_run_as_code():
    def runs_code(node):
        name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        return name in ("eval", "exec", "compile", "__import__", "builtins.eval", "builtins.exec")

    found = {relative(path) for path in FILES if any(map(runs_code, ast.walk(parse(path))))}
    assert found == set()


def test_arrays_are_loaded_without_pickle():
    # `numpy.load` refuses pickles unless this argument is true.
    words = [
        word
        for path in FILES
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call)
        for word in node.keywords
        if word.arg in ("allow_pickle", "weights_only")
    ]
    assert [ast.unparse(word.value) for word in words if word.arg == "weights_only"] == []
    assert {ast.unparse(word.value) for word in words} <= {"False"}


def test_softmax_over_keys_is_in_one_file_only():
    def takes_softmax(path):
        names = (name.rpartition(".")[2] for name in mentioned(parse(path)))
        return any(name in ("softmax", "Softmax") for name in names)

    # Peers of benchmarks are plain PyTorch, independent of this package.
    peers = ("bench/peers/", "bench/decode/peers/")
    ours = [path for path in FILES if not relative(path).startswith(peers)]
    assert {relative(path) for path in ours if takes_softmax(path)} == {"attention/attend.py"}


SLOW_PACKAGES = {"matplotlib", "sacrebleu"}
"""Packages that take longer to import than a prediction takes, and that few functions use."""


def test_functions_import_optional_and_slow_packages_only():
    # A command imports what it needs, so that --help is quick.
    outside_cli = [path for path in FILES if not relative(path).startswith("cli/")]
    inner = {
        (relative(path), name)
        for path in outside_cli
        for function in functions(parse(path))
        for name in imported(function)
        if name.partition(".")[0] not in optional_packages() | SLOW_PACKAGES
    }
    assert inner == set()


def test_no_function_takes_arbitrary_arguments():
    catch_all = {
        (relative(path), function.name)
        for path in FILES
        for function in functions(parse(path))
        if function.args.kwarg
    }
    assert catch_all == set()


def test_no_file_is_too_long():
    lengths = {relative(path): len(path.read_bytes().splitlines()) for path in FILES}
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def test_no_file_is_a_collection_of_helpers():
    vague_names = {"utils", "util", "helpers", "helper", "common", "misc", "tools"}
    assert {
        relative(path) for path in FILES if {path.stem, path.parent.name} & vague_names
    } == set()
