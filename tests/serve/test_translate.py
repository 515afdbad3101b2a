"""LibreTranslate's API, with two of its clients and without."""

import time

import pytest
from deep_translator import LibreTranslator
from libretranslatepy import LibreTranslateAPI

import regard
from regard.serve.text.languages import LanguageDetector, find_pair
from regard.serve.text.markup import Markup
from regard.serve.text.sentences import Sentences


@pytest.fixture(scope="module")
def translate(tiny_run):
    return regard.load(tiny_run.folder, device="cpu").translate


def test_libretranslatepy(live, translate):
    api = LibreTranslateAPI(live.url)
    assert api.translate("a b c d", "en", "de") == translate("a b c d")
    assert api.languages() == [
        {"code": "de", "name": "German", "targets": []},
        {"code": "en", "name": "English", "targets": ["de"]},
    ]
    assert {one["language"] for one in api.detect("a b c")} == {"en", "de"}


def test_deep_translator(live, translate):
    translator = LibreTranslator(
        source="en", target="de", api_key="unused", custom_url=f"{live.url}/"
    )
    assert translator.translate("a b c d") == translate("a b c d")
    assert translator.translate_batch(["a b", "c d e"]) == translate(["a b", "c d e"])


def post(client, **body):
    reply = client.post("/translate", json={"source": "en", "target": "de", **body})
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_a_text_and_a_list(client, translate):
    assert post(client, q="a b c") == {"translatedText": translate("a b c")}
    assert post(client, q=["a b c", "d e"]) == {"translatedText": translate(["a b c", "d e"])}


def test_lines_are_translated_one_by_one(client, translate):
    found = post(client, q="a b c\n\n  d e\r\n")["translatedText"]
    assert found == f"{translate('a b c')}\n\n  {translate('d e')}\r\n"


def test_alternatives_are_distinct(client, tiny_run):
    task = regard.load(tiny_run.folder, device="cpu")
    (best,) = task.predict(["a b c d"], num_best=4)
    found = post(client, q="a b c d", alternatives=3)
    assert found["translatedText"] == best[0].text
    assert found["alternatives"] == [one.text for one in best[1:]]
    found = post(client, q=["a b c d", ""], alternatives=2)
    assert found["alternatives"] == [[one.text for one in best[1:3]], []]


def test_tags_of_html_keep_their_position(client, translate):
    page = (
        '<!DOCTYPE html><p class="a">a b c <b>d e</b>\n<br/><img alt="e d"></p><!-- a b -->'
        "<pre>a &lt; b</pre><span translate=no>c d</span><script>if (a < b) {}</script> e d"
    )
    expected = page.replace(">a b c <", f">{translate('a b c')} <", 1)
    expected = expected.replace(">d e<", f">{translate('d e')}<")
    expected = expected.removesuffix("e d") + translate("e d")
    assert post(client, q=page, format="html")["translatedText"] == expected


def test_the_source_language_is_detected(client, translate):
    found = post(client, q="a b c", source="auto")
    assert found["translatedText"] == translate("a b c")
    assert found["detectedLanguage"]["language"] == "en"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"q": "a", "source": "en", "target": "fr"}, 400),
        ({"q": "a", "source": "auto", "target": "fr"}, 400),
        ({"q": "a", "source": "en"}, 422),
        ({"source": "en", "target": "de"}, 422),
        ({"q": "a", "source": "en", "target": "de", "format": "pdf"}, 422),
        ({"q": [], "source": "en", "target": "de"}, 422),
    ],
)
def test_requests_that_are_refused(client, body, status):
    reply = client.post("/translate", json=body)
    assert reply.status_code == status
    assert reply.json()["error"].endswith(".")


def test_settings_of_pages(client):
    found = client.get("/frontend/settings").json()
    assert found["language"] == {
        "source": {"code": "en", "name": "English"},
        "target": {"code": "de", "name": "German"},
    }
    assert found["charLimit"] == client.state.limits.characters
    assert not found["keyRequired"]


def test_texts_of_a_request_have_one_language(client):
    found = post(client, q=["a b c", "d e"], source="auto")
    assert len(found["translatedText"]) == len(found["detectedLanguage"]) == 2
    detected = client.post("/detect", json={"q": ["a b c", "d e"]}).json()
    (english,) = (one for one in detected if one["language"] == "en")
    assert found["detectedLanguage"] == [english] * 2


def test_whitespace_takes_linear_time():
    started = time.perf_counter()
    page = f"a{' ' * 100_000}b"
    markup = Markup(page)
    assert markup.texts == [page]
    assert markup.with_texts(["c"]) == "c"
    assert time.perf_counter() - started < 5  # in quadratic time, more than a minute


def test_markup_without_translation_is_unchanged():
    page = "<div a=1 b='2'>x &amp; y<br><i>z</i>\n <p>&lt;q&gt;</div><!--c--><?d e?> f"
    markup = Markup(page)
    assert markup.texts == ["x & y", "z", "<q>", "f"]
    assert markup.with_texts(markup.texts) == page


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("A dog runs. It barks! Why? Oh", ["A dog runs.", "It barks!", "Why?", "Oh"]),
        ("Dr. Who sees 3.5 km.", ["Dr. Who sees 3.5 km."]),
        ("犬が走る。猫も走る。", ["犬が走る。", "猫も走る。"]),
        (" a \n\n b\u2028c ", ["a", "b", "c"]),
        ("", []),
    ],
)
def test_sentences_of_a_text(text, sentences):
    split = Sentences(text)
    assert split.texts == sentences
    assert split.with_texts(split.texts) == text


def test_languages_of_runs():
    assert find_pair("en-de", ()) == ("en", "de")
    assert find_pair("mine", ("multi30k",)) == ("en", "de")
    assert find_pair("mine", ("pairs.tsv",)) is None


def test_detection_of_languages():
    detector = LanguageDetector(
        {"en": ["The dog sees the house."], "de": ["Der Hund sieht das Haus."], "fr": []}
    )
    for text, expected in (("the dog", "en"), ("das Haus", "de")):
        found = detector.detect(text)
        assert found[0][0] == expected
        assert sum(probability for _, probability in found) == pytest.approx(1)
    assert LanguageDetector({}).detect("a") == []
