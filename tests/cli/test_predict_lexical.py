"""`regard predict` with glossaries, kept parts, forbidden words and unknown words."""

import json

import pytest

from regard.runs.train import train

SOURCES = ["a b c", "", "e d", "b a c d"]


@pytest.fixture
def sources(tmp_path):
    path = tmp_path / "sources.txt"
    path.write_text("\n".join(SOURCES) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def glossary(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("a\te e\nd\tc c\n", encoding="utf-8")
    return path


def test_glossary_terms_are_in_the_predictions(regard, tiny_run, sources, glossary):
    plain = regard("predict", tiny_run.folder, sources).lines
    result = regard("predict", tiny_run.folder, sources, "--glossary", glossary)
    first, empty, third, last = result.lines
    assert "e e" in first and "e e" not in plain[0]
    assert empty == ""
    assert "c c" in third
    assert "e e" in last and "c c" in last


def test_json_lists_the_constraints_that_are_met(regard, tiny_run, sources, glossary):
    arguments = ("--glossary", glossary, "--keep", "[cd]", "--forbid", "b", "--json")
    rows = [json.loads(line) for line in regard(*_predict(tiny_run, sources), *arguments).lines]
    [best] = rows[3]["predictions"]
    assert best["phrases"] == [
        {"phrase": "e e", "kind": "glossary", "source": "a", "is_met": True},
        {"phrase": "c", "kind": "keep", "source": "c", "is_met": True},
        {"phrase": "c c", "kind": "glossary", "source": "d", "is_met": True},
        {"phrase": "b", "kind": "forbid", "source": None, "is_met": True},
    ]
    assert "b" not in best["text"]


def _predict(run, sources):
    return "predict", run.folder, sources


def test_forbidden_words_are_not_in_the_predictions(regard, tiny_run, sources):
    plain = regard(*_predict(tiny_run, sources)).out
    assert "b" in plain
    assert "c" in plain
    for arguments in ((), ("--beam", 1), ("search.temperature=1",)):
        found = regard(*_predict(tiny_run, sources), "--forbid", "b", "--forbid", "c", *arguments)
        assert "b" not in found.out
        assert "c" not in found.out


def test_greedy_search_with_a_glossary_uses_a_beam(regard, tiny_run, sources, glossary):
    result = regard(*_predict(tiny_run, sources), "--glossary", glossary, "--beam", 1)
    assert "e e" in result.lines[0]


def test_several_predictions_contain_the_terms(regard, tiny_run, sources, glossary):
    result = regard(*_predict(tiny_run, sources), "--glossary", glossary, "--nbest", 3)
    texts = [line.split("\t")[2] for line in result.lines if line.startswith("1\t")]
    assert len(texts) == 3
    assert all("e e" in text for text in texts)


def test_reranked_predictions_contain_the_terms(regard, tiny_run, sources, glossary):
    arguments = ("--glossary", glossary, "--rerank", tiny_run.folder)
    assert "e e" in regard(*_predict(tiny_run, sources), *arguments).lines[0]


def test_unknown_words_are_replaced(regard, refused, reverse_files, tmp_path, sources):
    words = ("data.source.kind=word", "data.target.kind=word", "data.target.vocab_size=7")
    run = train(reverse_files.request(tmp_path / "words", *words))
    assert "⁇" in regard(*_predict(run, sources)).out
    result = regard(*_predict(run, sources), "--replace-unknown")
    assert "⁇" not in result.out
    assert len(result.lines) == len(SOURCES)


def test_unknown_words_need_attention(refused, tiny_run_without_attention, sources):
    message = refused(*_predict(tiny_run_without_attention, sources), "--replace-unknown")
    assert message.startswith("`replace_unknown` needs attention weights")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb\nc\n", "line 2, must have two columns"),
        (b"a\t\n", "line 1, must have a target term, but it is empty."),
        (b"a\tb\n\td\n", "line 2, must have a source term, but it is empty."),
        (b"a\t\xff\n", "line 1, is not UTF-8"),
        (b"", "must have at least one term"),
        ("a\tb Ж\n".encode(), "'b Ж' is tokenised as 'b ⁇'"),
        (b"a\t" + b"b " * 99, "Required phrases and the end token must fit"),
    ],
)
def test_wrong_glossaries_are_refused(refused, tiny_run, sources, glossary, content, message):
    glossary.write_bytes(content)
    assert message in refused(*_predict(tiny_run, sources), "--glossary", glossary)


def test_missing_glossary_is_refused(refused, tiny_run, sources, tmp_path):
    message = refused(*_predict(tiny_run, sources), "--glossary", tmp_path / "none.tsv")
    assert message == f"{tmp_path / 'none.tsv'} does not exist."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--keep", "("), "`keep` must be one of 'url', 'email', 'number', 'placeholder' or a"),
        (("--forbid", " "), "`forbid` must be a word or phrase, but is empty."),
        (("--forbid", "e"), "'e e' contains 'e' (`forbid`)"),
        (("search.temperature=1",), "`search.temperature` must be 0"),
        (("search.consensus=4",), "`search.consensus` must be 0"),
        (("search.consensus=4", "search.consensus_metric=chrf"), "`search.consensus` must be 0"),
        (("search.groups=2",), "`search.groups` must be 1"),
        (("search.coverage_penalty=0.2",), "`search.coverage_penalty` must be 0"),
    ],
)
def test_conflicts_are_refused(refused, tiny_run, sources, glossary, arguments, message):
    assert message in refused(*_predict(tiny_run, sources), "--glossary", glossary, *arguments)


def test_other_tasks_are_refused(refused, sorting_run, sources, monkeypatch):
    monkeypatch.setattr("regard.runs.folder.load", lambda run, device: sorting_run)
    assert refused("predict", "runs/sorter", sources, "--forbid", "a") == (
        "`--glossary`, `--keep`, `--forbid` and `--replace-unknown` are for runs for the task "
        "'generation', an encoder–decoder, but this run is one for 'sorting'. Leave them out."
    )


def test_refused_settings_do_not_need_a_source_with_terms(refused, tiny_run, tmp_path):
    glossary = tmp_path / "other.tsv"
    glossary.write_text("zz z\ta\n", encoding="utf-8")
    message = refused("predict", tiny_run.folder, "a b", "--glossary", glossary, "search.groups=2")
    assert message.startswith("`search.groups` must be 1 with required phrases")


def test_beam_tree_needs_a_sentence_without_required_phrases(refused, tiny_run, glossary, tmp_path):
    tree = tmp_path / "tree.json"
    options = ("--glossary", glossary, "--tree", tree)
    assert refused("predict", tiny_run.folder, "a b", *options).startswith("A beam tree must be of")
    assert not tree.exists()
