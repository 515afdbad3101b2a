"""Imported models equal those of `transformers`, and exported models equal ours."""

import json
import warnings

import pytest
import torch

from regard.interop.huggingface.export import export_run
from regard.interop.huggingface.load import import_folder
from regard.models.encoders.bert import segment
from regard.runs.folder import load
from regard.search.beam import beam_search
from regard.search.scorer import ModelScorer
from regard.search.settings import SearchConfig
from tests.huggingface_folders import (
    ENGLISH,
    GERMAN,
    MASKED,
    save_bert,
    save_marian,
    save_roberta,
)

transformers = pytest.importorskip("transformers", reason="transformers is not installed")


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.inference_mode():
        yield


@pytest.fixture(params=MASKED)
def both(request, tmp_path):
    """A run and the model it was imported from."""
    theirs = MASKED[request.param](tmp_path / "hf")
    return import_folder(tmp_path / "hf", tmp_path / "run").task, theirs


def pairs_of(task):
    """Two texts side by side and a single one, padded."""
    roles = task.tokenizer
    others = [i for i in range(12) if i not in (roles.pad, roles.sos, roles.eos)]
    rows = [
        [roles.sos, *others[:3], roles.eos, *others[3:5], roles.eos],
        [roles.sos, *others[2:5], roles.eos, *[roles.pad] * 3],
    ]
    ids = torch.tensor(rows)
    return ids, ids != roles.pad


def extra_of(task, theirs, ids):
    if getattr(theirs.config, "type_vocab_size", 0) < 2:
        return {}
    return {"token_type_ids": segment(ids, task.tokenizer.eos).clamp(max=1)}


def test_states_equal_hugging_face(both):
    task, theirs = both
    ids, mask = pairs_of(task)
    expected = theirs.base_model(
        input_ids=ids, attention_mask=mask.long(), **extra_of(task, theirs, ids)
    ).last_hidden_state
    found = task.model.encode(ids, mask).states
    assert torch.allclose(found[mask], expected[mask], atol=1e-5)


def test_logits_equal_hugging_face(both):
    task, theirs = both
    ids, mask = pairs_of(task)
    expected = theirs(
        input_ids=ids, attention_mask=mask.long(), **extra_of(task, theirs, ids)
    ).logits
    assert expected.std() > 1
    assert torch.allclose(task.model(ids, mask)[mask], expected[mask], atol=1e-5)


def test_run_folder_holds_the_same_model(both, tmp_path):
    task, _ = both
    ids, mask = pairs_of(task)
    assert torch.equal(load(tmp_path / "run", "cpu").model(ids, mask), task.model(ids, mask))


def test_export_gives_their_weights_back(both, tmp_path):
    task, theirs = both
    exported = export_run(tmp_path / "run", tmp_path / "out")
    assert exported.model_type == theirs.config.model_type
    assert exported.difference < 1e-4
    again = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "out").eval()
    ids, mask = pairs_of(task)
    extra = extra_of(task, theirs, ids)
    for model in (again, theirs):
        logits = model(input_ids=ids, attention_mask=mask.long(), **extra).logits
        assert torch.allclose(task.model(ids, mask)[mask], logits[mask], atol=1e-5)


def test_exported_tokenizer_reads_as_we_do(both, tmp_path):
    task, _ = both
    export_run(tmp_path / "run", tmp_path / "out")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    for text in ["a b ab", "", "cab dad"]:
        assert theirs(text)["input_ids"] == task.text.read(text)
    read = theirs("a b", "ab c")
    assert read["input_ids"] == task.text.read(("a b", "ab c"))
    assert theirs.mask_token_id == task.tokenizer.mask
    segments = segment(torch.tensor([read["input_ids"]]), task.tokenizer.eos)[0]
    has_segments = task.recipe.model.encoder.num_segments > 1
    assert read.get("token_type_ids") == (segments.tolist() if has_segments else None)


def test_old_vocabulary_files_read_as_theirs(tmp_path):
    save_roberta(tmp_path / "hf")
    task = import_folder(tmp_path / "hf", tmp_path / "run").task
    theirs = transformers.RobertaTokenizer.from_pretrained(tmp_path / "hf")
    for text in ("a b ab", "x ab", "é 你好!", ""):
        assert task.text.read(text) == theirs(text)["input_ids"]


def test_list_of_wordpieces_reads_as_theirs(tmp_path):
    theirs = save_bert(tmp_path / "hf")
    (tmp_path / "hf" / "tokenizer.json").unlink()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh", "##a", "##b", "##c"]
    assert len(words) == theirs.config.vocab_size
    (tmp_path / "hf" / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    task = import_folder(tmp_path / "hf", tmp_path / "run").task
    tokenizer = transformers.BertTokenizer.from_pretrained(tmp_path / "hf")
    for text in ("A b ab", "cáb, x", ""):
        assert task.text.read(text) == tokenizer(text)["input_ids"]


def test_encoder_alone_gets_a_fresh_head(tmp_path):
    theirs = save_bert(tmp_path / "hf", has_head=False)
    imported = import_folder(tmp_path / "hf", tmp_path / "run")
    (note,) = imported.notes
    assert "no head" in note
    ids, mask = pairs_of(imported.task)
    extra = extra_of(imported.task, theirs, ids)
    expected = theirs(input_ids=ids, attention_mask=mask.long(), **extra).last_hidden_state
    states = imported.task.model.encode(ids, mask).states
    assert torch.allclose(states[mask], expected[mask], atol=1e-5)


def test_unused_second_segment_of_roberta_is_left_behind(tmp_path):
    theirs = save_roberta(tmp_path / "hf", type_vocab_size=2)
    task = import_folder(tmp_path / "hf", tmp_path / "run").task
    ids, mask = pairs_of(task)
    expected = theirs(input_ids=ids, attention_mask=mask.long()).logits
    assert torch.allclose(task.model(ids, mask)[mask], expected[mask], atol=1e-5)


MARIANS = {
    "joint": {},
    "two vocabularies": {"is_joint": False, "activation": "relu"},
    "pickle": {"as_pickle": True},
}


@pytest.fixture(params=MARIANS.values(), ids=MARIANS)
def marians(request, tmp_path):
    """A run and the Marian model it was imported from."""
    pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    theirs = save_marian(tmp_path / "hf", **request.param)
    return import_folder(tmp_path / "hf", tmp_path / "run").task, theirs


def sources_of(task):
    return task.source.stack(task.source.read_all(ENGLISH[:3]))


def test_marian_logits_equal_hugging_face(marians):
    task, theirs = marians
    ids, mask = sources_of(task)
    targets, _ = task.target.stack(task.target.read_all(GERMAN[:3]))
    expected = theirs(input_ids=ids, attention_mask=mask.long(), decoder_input_ids=targets).logits
    assert expected.std() > 1
    assert torch.allclose(task.model(ids, mask, targets).logits, expected, atol=1e-4)


def generate(theirs, ids, mask, **options):
    pad = theirs.config.pad_token_id
    generated = theirs.generate(
        input_ids=ids,
        attention_mask=mask.long(),
        do_sample=False,
        bad_words_ids=[[pad]],
        **options,
    )
    return [[token for token in row if token != pad] for row in generated.tolist()]


def test_greedy_translations_equal_hugging_face(marians):
    task, theirs = marians
    expected = generate(theirs, *sources_of(task), num_beams=1, max_new_tokens=30)
    search = SearchConfig(beams=1, max_ratio=0, max_extra=30)
    found = task.predict(ENGLISH[:3], search=search)
    for (best,), tokens in zip(found, expected, strict=True):
        assert list(best.tokens) == [task.target.tokenizer.token(token) for token in tokens]


def test_beams_equal_hugging_face(marians):
    task, theirs = marians
    ids, mask = sources_of(task)
    expected = generate(
        theirs,
        ids,
        mask,
        num_beams=4,
        max_new_tokens=12,
        early_stopping="never",
        length_penalty=1.0,
    )
    roles = task.target.tokenizer
    found = beam_search(
        ModelScorer(task.model, task.model.encode(ids, mask), banned=(roles.pad,)),
        start=roles.sos,
        end=roles.eos,
        max_lengths=torch.tensor([12] * 3),
        config=SearchConfig(beams=4),
    )
    assert [list(hypotheses[0].tokens) for hypotheses in found] == expected


VARIED = [
    *ENGLISH,
    *GERMAN,
    "  spaces   everywhere ",
    "Ünknown 你好 lettérs",
    "ﬁne ½ ligatures №",
    "</s> <unk> <pad> stay text",
    ">>deu<< the house",
    "",
    "new\nline\tand tab",
]


@pytest.fixture
def marian_tokenizer(marians, tmp_path):
    with warnings.catch_warnings():
        # It recommends a package that tidies punctuation.
        warnings.simplefilter("ignore")
        options = {"separate_vocabs": (tmp_path / "hf" / "target_vocab.json").exists()}
        if options["separate_vocabs"]:
            options["target_vocab_file"] = str(tmp_path / "hf" / "target_vocab.json")
        return transformers.MarianTokenizer.from_pretrained(tmp_path / "hf", **options)


@pytest.mark.parametrize("text", VARIED)
def test_tokens_equal_hugging_face(marians, marian_tokenizer, text):
    task, _ = marians
    if "<pad>" in text:
        # Theirs takes the spelling for the token; ours never does.
        ids = task.source.read(text)
        assert task.source.tokenizer.pad not in ids
        assert ids.count(task.source.tokenizer.eos) == 1
        return
    assert task.source.read(text) == marian_tokenizer(text)["input_ids"]


def test_target_tokens_equal_hugging_face(marians, marian_tokenizer):
    task, _ = marians
    for text in GERMAN:
        expected = marian_tokenizer(text_target=text)["input_ids"]
        assert task.target.read(text)[1:] == expected
        assert task.target.write(expected) == text


def test_marian_export_gives_their_weights_back(marians, tmp_path):
    task, theirs = marians
    assert export_run(tmp_path / "run", tmp_path / "out").difference < 1e-4
    again = transformers.MarianMTModel.from_pretrained(tmp_path / "out").eval()
    ids, mask = sources_of(task)
    options = {"num_beams": 1, "max_new_tokens": 10}
    assert generate(again, ids, mask, **options) == generate(theirs, ids, mask, **options)
    back = import_folder(tmp_path / "out", tmp_path / "back").task
    assert back.translate(ENGLISH) == task.translate(ENGLISH)
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        tmp_path / "out", config=transformers.PreTrainedConfig()
    )
    assert tokenizer(ENGLISH[0])["input_ids"] == task.source.read(ENGLISH[0])


def test_config_describes_the_exported_model(marians, tmp_path):
    export_run(tmp_path / "run", tmp_path / "out")
    config = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))
    assert config["model_type"] == "marian"
