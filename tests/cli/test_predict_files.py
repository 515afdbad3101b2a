"""`regard predict` for large files: memory, order, and `--resume`."""

import gzip
import itertools
import json
import random
import signal
import subprocess
import sys
import time
import tracemalloc
from functools import partial
from types import SimpleNamespace

import pytest

from regard.core.errors import ConfigError
from regard.core.files import read_json
from regard.data.text.tables import NUM_INSPECTED
from regard.runs.folder import load
from regard.runs.prediction import output
from regard.tasks.generation.task import Predictor
from regard.tasks.prediction import Prediction

NUM = 24_000


@pytest.fixture
def many(tmp_path):
    """A file of many lines, which takes some seconds."""
    generator = random.Random(0)
    path = tmp_path / "many.txt"
    path.write_text(
        "".join(
            " ".join(generator.choices("abcde", k=generator.randint(0, 4))) + "\n"
            for _ in range(NUM)
        )
    )
    return path


@pytest.fixture
def in_pairs(monkeypatch):
    """Predict two sources at once, and save after each group."""
    monkeypatch.setattr("regard.runs.prediction.predict.NUM_SOURCES", 2)
    monkeypatch.setattr(output, "SAVE_SECONDS", 0.0)


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("a b c\n\ne d\nb a c d\na\n")
    return path


@pytest.fixture
def failing(tiny_run, monkeypatch):
    """Function that lets the prediction of the N-th group from now on raise Ctrl-C."""
    predict = type(tiny_run.predictor).predict

    def fail(at):
        numbers = itertools.count(1)

        def predict_or_stop(self, sources, **options):
            if next(numbers) == at:
                signal.raise_signal(signal.SIGTERM)
            return predict(self, sources, **options)

        monkeypatch.setattr(type(tiny_run.predictor), "predict", predict_or_stop)

    yield fail


@pytest.mark.parametrize(
    "options", [(), ("--nbest", 2), ("--json", "--nbest", 2), ("--seed", 3, "search.temperature=1")]
)
@pytest.mark.parametrize("at", [2, 3])
def test_resumed_file_has_the_bytes_of_an_uninterrupted_one(
    regard, tiny_run, lines, tmp_path, in_pairs, failing, options, at
):
    whole, out = tmp_path / "whole.txt", tmp_path / "out.txt"
    arguments = ("predict", tiny_run.folder, lines, *options)
    assert regard(*arguments, "--out", whole).code == 0
    failing(at)
    stopped = regard(*arguments, "--out", out)
    assert (stopped.code, stopped.out) == (130, "")
    assert stopped.err.splitlines() == [
        f"{out}.part holds predictions of {2 * at - 2} sources. Continue with the same command "
        "and `--resume`.",
        "regard: interrupted.",
    ]
    part = (tmp_path / "out.txt.part").read_text()
    assert part.endswith("\n") and whole.read_text().startswith(part) and not out.exists()
    resumed = regard(*arguments, "--out", out, "--resume")
    assert (resumed.code, resumed.lines) == (0, [str(out)])
    assert out.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lines.txt", "out.txt", "whole.txt"]


def test_standard_input_is_resumed(regard, tiny_run, lines, tmp_path, in_pairs, failing):
    out = tmp_path / "out.txt"
    expected = regard("predict", tiny_run.folder, lines).out
    failing(2)
    arguments = ("predict", tiny_run.folder, "--out", out)
    assert regard(*arguments, stdin=lines.read_text()).code == 130
    assert regard(*arguments, "--resume", stdin=lines.read_text()).code == 0
    assert out.read_text() == expected


def test_other_run_options_and_input_are_refused(
    regard, refused, tiny_run, tiny_run_without_attention, lines, tmp_path, in_pairs, failing
):
    out = tmp_path / "out.txt"
    failing(3)
    regard("predict", tiny_run.folder, lines, "--out", out)
    rest = (lines, "--out", out, "--resume")
    must = "`--resume` must be given with the"
    assert refused("predict", tiny_run_without_attention.folder, *rest).startswith(f"{must} run ")
    for option, change in (
        (("--beam", 3), "`search.beams` was 4 and is 3"),
        (("search.max_ratio=1",), "`search.max_ratio` was "),
        (("--nbest", 2), "`--nbest` was 1 and is 2"),
        (("--prefix", "a"), "`--prefix` was '' and is 'a'"),
        (("--json",), "`--json` was False and is True"),
    ):
        message = refused("predict", tiny_run.folder, *rest, *option)
        assert message.startswith(f"{must} options of the interrupted command, but {change}")
    lines.write_text("a b\n" + lines.read_text())
    assert "its first 4 sources differ" in refused("predict", tiny_run.folder, *rest)
    assert "or delete the file" in refused("predict", tiny_run.folder, *rest[:-1])


def test_other_words_and_engines_are_refused(
    regard, refused, tiny_run, lines, tmp_path, in_pairs, failing
):
    out, glossary = tmp_path / "out.txt", tmp_path / "terms.tsv"
    glossary.write_text("a\te e\n", encoding="utf-8")
    arguments = ("predict", tiny_run.folder, lines, "--out", out, "--json")
    words = ("--glossary", glossary, "--keep", "[cd]", "--forbid", "b")
    failing(3)
    assert regard(*arguments, *words, "--alternatives", 2).code == 130
    must = "`--resume` must be given with the options of the interrupted command, but"
    for options, change in (
        (("--alternatives", 3, *words), "`--alternatives` was 2 and is 3."),
        (words, "`--alternatives` was 2 and is None."),
        (("--alternatives", 2, *words[2:]), "`--glossary` was '"),
        (("--alternatives", 2, *words, "--keep", "url"), "`--keep` was ['[cd]'] and is ["),
        (("--alternatives", 2, *words[:4]), "`--forbid` was ['b'] and is []."),
        (("--alternatives", 2, *words, "--replace-unknown"), "`--replace-unknown` was False and"),
        (("--alternatives", 2, *words, "search.precision=bf16"), "`search.precision` was 'fp32'"),
    ):
        message = refused(*arguments, "--resume", *options)
        assert message.startswith(f"{must} {change}")
    glossary.write_text("a\tc c\n", encoding="utf-8")
    message = refused(*arguments, "--resume", *words, "--alternatives", 2)
    assert message.startswith(f"{must} `--glossary` was '")
    glossary.write_text("\na\te e\n\n", encoding="utf-8")  # the same terms
    assert regard(*arguments, "--resume", *words, "--alternatives", 2).code == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert all("phrases" in one for row in rows for one in row["predictions"] if row["source"])


def test_predictions_are_not_continued_with_another_engine(
    regard, refused, tiny_transformer_run, lines, tmp_path, in_pairs, monkeypatch
):
    pytest.importorskip("ctranslate2")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    arguments = ("predict", tiny_transformer_run.folder, lines, "--out", tmp_path / "out.txt")
    predict, numbers = Predictor.predict, itertools.count(1)

    def predict_or_stop(self, sources, **options):
        if next(numbers) == 2:
            signal.raise_signal(signal.SIGTERM)
        return predict(self, sources, **options)

    monkeypatch.setattr(Predictor, "predict", predict_or_stop)
    assert regard(*arguments).code == 130
    message = refused(*arguments, "--resume", "--engine", "ctranslate2")
    assert "but `--engine` was 'regard' and is 'ctranslate2'." in message


def test_images_and_several_processes_are_not_resumed(tmp_path):
    with pytest.raises(ConfigError, match="but images are predicted"):
        output.check_resumed(tmp_path, has_images=True, num_processes=1)
    with pytest.raises(ConfigError, match="is for one process, but there are 2"):
        output.check_resumed(tmp_path, has_images=False, num_processes=2)


def test_resume_needs_an_interrupted_file(regard, refused, tiny_run, lines, tmp_path):
    out = tmp_path / "out.txt"
    arguments = ("predict", tiny_run.folder, lines, "--resume")
    assert refused(*arguments) == "`--resume` continues a file. Name it with `--out`."
    assert regard(*arguments, "--out", out).code == 0
    before = out.read_text()
    assert "cannot be resumed" in refused(*arguments, "--out", out)
    assert out.read_text() == before


def test_lines_after_an_error_are_predicted_when_it_is_corrected(
    regard, tiny_run, lines, tmp_path, in_pairs
):
    good, out = lines.read_bytes(), tmp_path / "out.txt"
    expected = regard("predict", tiny_run.folder, lines).out
    # The first lines are inspected before the first prediction.
    filler = b"a\n" * NUM_INSPECTED
    lines.write_bytes(good + filler + b"\xff\n")
    arguments = ("predict", tiny_run.folder, lines, "--out", out)
    result = regard(*arguments)
    assert result.code == 2
    assert "is not UTF-8" in result.err.splitlines()[-1]
    assert "Continue with the same command and `--resume`." in result.err.splitlines()[-2]
    lines.write_bytes(good + filler + b"e d\n")
    assert regard(*arguments, "--resume").code == 0
    written = out.read_text().splitlines(keepends=True)
    assert "".join(written[:5]) == expected and written[-1] == expected.splitlines(True)[2]
    assert len(written) == 6 + NUM_INSPECTED


def test_file_grows_while_it_is_read(regard, tiny_run, lines, tmp_path, in_pairs, monkeypatch):
    sizes = []
    predict = type(tiny_run.predictor).predict

    def observe(self, sources, **options):
        part = tmp_path / "out.txt.part"
        sizes.append(len(part.read_text().splitlines()))
        return predict(self, sources, **options)

    monkeypatch.setattr(type(tiny_run.predictor), "predict", observe)
    assert regard("predict", tiny_run.folder, lines, "--out", tmp_path / "out.txt").code == 0
    assert sizes == [0, 2, 4]


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("lines.txt", ("--json",)),
        ("lines.txt", ("--nbest", 3)),
        ("lines.txt.gz", ()),
        ("-", ("--json",)),
    ],
)
def test_memory_does_not_depend_on_the_number_of_lines(
    regard, tiny_run, tmp_path, monkeypatch, source, options
):
    def predict(self, sources, *, num_best, **_):
        return [[Prediction(source, -1.0, (), ())] * num_best for source in sources]

    monkeypatch.setattr(type(tiny_run.predictor), "predict", predict)
    task = load(tiny_run.folder, "cpu")
    monkeypatch.setattr("regard.runs.folder.load", lambda run, device: task)

    def measure(num):
        path = tmp_path / f"lines.txt{'.gz' * source.endswith('.gz')}"
        with (gzip.open if source.endswith(".gz") else open)(path, "wt") as file:
            file.writelines(f"a b {number}\n" for number in range(num))
        argument = source if source == "-" else path
        with path.open() as stdin:
            # The runner of commands makes standard input an array of bytes.
            monkeypatch.setattr("regard.data.text.lines.sys", SimpleNamespace(stdin=stdin))
            tracemalloc.start()
            result = regard("predict", "run", argument, *options, "--out", tmp_path / "out")
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert result.code == 0, result
        return peak

    monkeypatch.setattr("regard.runs.prediction.output.find_checksums", lambda *_, **__: "")
    monkeypatch.setattr("regard.runs.prediction.predict.NUM_SOURCES", 200)
    measure(1_500)
    # A list of the other lines alone would take 700 KB; buffers of files take some, too.
    assert measure(12_000) < measure(2_000) + 250_000


def start(*arguments):
    command = (sys.executable, "-m", "regard", *map(str, arguments))
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.faults
def test_killed_and_stopped_processes_are_resumed(regard, tiny_run, many, tmp_path):
    """SIGKILL before and after the first saved state, then SIGTERM, then Ctrl-C."""
    whole, out, part = (tmp_path / name for name in ("whole.txt", "out.txt", "out.txt.part"))
    state = tmp_path / "out.txt.part.json"
    arguments = ("predict", tiny_run.folder, many, "--device", "cpu", "--nbest", 2)
    assert regard(*arguments, "--out", whole).code == 0

    def saved():
        return read_json(state)["sources"] if state.exists() else 0

    def has_more(before):
        return saved() > before

    def has_text(path):
        return path.exists() and path.stat().st_size

    steps = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
    for number, sent in enumerate(steps):
        has_grown = partial(has_more, saved()) if number else partial(has_text, part)
        process = start(*arguments, "--out", out, "--resume")
        wait_until(has_grown)
        process.send_signal(sent)
        output, errors = process.communicate(timeout=60)
        assert not out.exists(), "The file is too short for this machine."
        assert whole.read_bytes().startswith(part.read_bytes()[: read_json(state)["bytes"]])
        if sent == signal.SIGKILL:
            assert process.returncode == -signal.SIGKILL
            continue
        assert (process.returncode, output) == (130, "")
        assert part.read_text().count("\n") == 2 * saved() - many_empty(many, saved())
        assert part.read_text().endswith("\n")
        assert errors.splitlines()[-2:] == [
            f"{part} holds predictions of {saved():,} sources. Continue with the same command and "
            "`--resume`.",
            "regard: interrupted.",
        ]
    assert saved() > 0
    assert regard(*arguments, "--out", out, "--resume").code == 0
    assert out.read_bytes() == whole.read_bytes()
    assert not part.exists() and not state.exists()


def many_empty(path, num):
    """Return how many of the first sources are empty: they have a single prediction."""
    with path.open() as file:
        return sum(not line.strip() for line in itertools.islice(file, num))


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_stopped_output_has_whole_lines(tiny_run, many, tmp_path, sent):
    process = start("predict", tiny_run.folder, many, "--device", "cpu", "--json")
    first = process.stdout.readline()
    process.send_signal(sent)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == "regard: interrupted.\n"
    rows = (first + output).splitlines(keepends=True)
    assert 0 < len(rows) < NUM and rows[-1].endswith("\n")
    assert "source" in json.loads(rows[-1])
