import pytest

from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import TOKENIZERS, train_tokenizer
from regard.search.lexical.constraints import SEPARATOR
from regard.tasks.generation.phrases import PhraseEncoder

TEXTS = [
    "Der Hund läuft (heute) im Gras.",
    "Die Hunde laufen, Ein Hut {name} kostet 3,5 Euro a@b.de",
    "das Hündchen „Hund“ im Hundehaus 我有狗 New York",
] * 3


@pytest.fixture(scope="module", params=TOKENIZERS)
def encoder(request):
    config = TokenizerConfig(kind=request.param, vocab_size=260 if request.param == "byte" else 120)
    return PhraseEncoder(train_tokenizer(config, TEXTS))


def spell(encoder, form):
    """The text of a form."""
    ids = [encoder.vocabulary.space if token == SEPARATOR else token for token in form]
    return encoder.tokenizer.decode(token for token in ids if token >= 0).strip()


@pytest.mark.parametrize("text", ["Hund", "New York", "{name}", "3,5", "a@b.de"])
def test_all_forms_spell_the_phrase(encoder, text):
    phrase = encoder.required(text, count=2)
    assert {spell(encoder, form) for form in phrase.forms} == {text}
    assert (phrase.text, phrase.count) == (text, 2)


def test_phrase_of_unknown_tokens_has_no_form(encoder):
    assert (encoder.required("Œuvre") is None) == (not encoder.tokenizer.is_byte_level)
    assert encoder.required(" ") is None or encoder.tokenizer.is_byte_level


def test_first_form_begins_after_whitespace(encoder):
    for text in ("Hund", "{name}"):
        first = encoder.required(text).forms[0]
        if first[0] == SEPARATOR:
            assert encoder.tokenizer.token(encoder.vocabulary.space) == "▁"
        else:
            assert encoder.tokenizer.token(first[0]).startswith("▁")


def matches(encoder, form, ids):
    """Whether a form is the end of token ids."""
    opens = encoder.vocabulary.opens
    tail = ids[-len(form) :]
    return len(tail) == len(form) and all(
        bool(opens[token]) if part == SEPARATOR else part == token
        for part, token in zip(form, tail, strict=True)
    )


@pytest.mark.parametrize("before", ["der ", "läuft (", "das „"])
def test_a_form_equals_the_end_of_a_text_that_ends_in_the_phrase(encoder, before):
    ids = encoder.tokenizer.encode(before + "Hund")
    if encoder.tokenizer.unk in ids or (encoder.tokenizer.is_byte_level and not before.isascii()):
        pytest.skip("The text has unknown tokens, or marks of several bytes.")
    phrase = encoder.required("Hund")
    assert any(matches(encoder, form, ids) for form in phrase.forms)
    inside = encoder.tokenizer.encode("xHund")
    assert not any(matches(encoder, form, inside) for form in phrase.forms)


def test_words_end_before_marks_whitespace_and_the_end_only(encoder):
    tokenizer, begins = encoder.tokenizer, encoder.vocabulary.begins
    tokens = tokenizer.encode("Hunde.")
    assert bool(begins[tokenizer.eos])
    assert bool(begins[tokens[-1]]) or tokenizer.token(tokens[-1]).endswith("Hunde.")
    if (index := encoder._ids.get("d")) is not None:
        assert not begins[index]


def test_scripts_without_whitespace_have_words_everywhere():
    char = PhraseEncoder(train_tokenizer(TokenizerConfig(kind="char", vocab_size=120), TEXTS))
    (index,) = char.required("狗").forms[0]
    assert char.vocabulary.begins[index]
    assert char.vocabulary.opens[index]


def paths(phrase):
    """All token sequences that spell a forbidden phrase after whitespace."""
    found = [((), 0)]
    complete = set()
    while found:
        tokens, at = found.pop()
        for begin, token, end in phrase.edges:
            if begin == at:
                if end == phrase.length:
                    complete.add((*tokens, token))
                found.append(((*tokens, token), end))
    return complete


@pytest.mark.parametrize("text", ["Hund", "New York"])
def test_forbidden_phrase_has_all_its_tokenisations(encoder, text):
    tokenizer = encoder.tokenizer
    spelled = paths(encoder.forbidden(text))
    assert {tokenizer.decode(tokens).strip() for tokens in spelled} == {text}
    prefix = tokenizer.encode("Gras ")
    assert tuple(tokenizer.encode(f"Gras {text}")[len(prefix) - tokenizer.is_byte_level :]) in (
        spelled
    )
    if encoder._ids.get("▁") is not None and text == "Hund":
        characters = tuple(encoder._ids[character] for character in "▁Hund")
        assert characters in spelled


def test_forbidden_phrase_that_cannot_be_spelled_is_none(encoder):
    assert (encoder.forbidden("Œuvre") is None) == (not encoder.tokenizer.is_byte_level)
