import json
import sys
import unicodedata
from pydoc_data.topics import topics

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_drill.data import (
    EncodedText,
    Lowercase,
    MosesPunctuation,
    MosesTokenization,
    PreprocessedLines,
    PreprocessedTokenizer,
    SentencePieceTokenizer,
    TextLines,
    UnicodeNormalization,
    Vocabulary,
    WhitespaceTokenizer,
    WordPieceTokenizer,
    WordTokenizer,
)

TEXTS = ["Ｆｕｌｌ ﬁne", "e\u0301 É 한글 ½", "", "ΑΣ İSTANBUL Straße", "a  b\u2028c\td"]
LINES = [" ".join(line.split()) for line in topics["import"].splitlines()]


def strings(tensor):
    return [text.decode() for text in tensor.numpy()]


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_unicode_normalization_is_that_of_the_standard_library(form):
    step = UnicodeNormalization(form)
    assert strings(step(TEXTS)) == [unicodedata.normalize(form, text) for text in TEXTS]
    assert step(b"a\xff").numpy().decode() == "a\ufffd"


def test_lowercase_is_for_every_script():
    assert strings(Lowercase()(["ÉTÉ", "ПРИВЕТ", "ΑΒ", "Straße 1"])) == [
        "été",
        "привет",
        "αβ",
        "straße 1",
    ]


def test_moses_gives_what_the_script_gives():
    moses = MosesTokenization("en")
    cases = {
        "Mr. Smith can't pay $1,000.50!": "Mr. Smith can &apos;t pay $ 1,000.50 !",
        '"It\'s [well-known] & <b>"': (
            "&quot; It &apos;s &#91; well-known &#93; &amp; &lt; b &gt; &quot;"
        ),
        "a  b\u2028c\td ": "a b c d",
        "": "",
    }
    assert strings(moses(list(cases))) == list(cases.values())
    french = MosesTokenization("fr", escape=False)
    assert french("L'été n'est-il pas là?").numpy().decode() == "L' été n' est-il pas là ?"
    dashes = MosesTokenization("en", aggressive_dashes=True)
    assert dashes("well-known").numpy() == b"well @-@ known"
    assert dashes.undo(dashes("well-known")).numpy() == b"well-known"
    turns = MosesTokenization("en", symbols=["__eou__", "<s>"])
    text = turns(["Hi. __eou__ Bye.<s>__eou__", "<s>", ""])
    assert strings(text) == ["Hi . __eou__ Bye . <s> __eou__", "<s>", ""]
    assert strings(turns.undo(text)) == ["Hi. __eou__ Bye. <s> __eou__", "<s>", ""]
    assert MosesPunctuation("en")("«It’s» … “so”").numpy() == b'"It\'s" ... "so"'


@pytest.mark.parametrize("escape", [True, False])
def test_moses_undoes_what_it_did(escape):
    moses = MosesTokenization("en", escape=escape)
    prose = [line for line in LINES if not set(line) & set("\"'`<>=|*_[]{}/")]
    assert len(prose) > 50
    undone = strings(moses.undo(moses(prose)))
    assert sum(a == b for a, b in zip(undone, prose, strict=True)) > 0.95 * len(prose)


def test_moses_takes_any_shape():
    moses = MosesTokenization("de")
    assert moses("Ja.").shape == () and moses(tf.constant([], tf.string)).shape == (0,)
    assert moses([["Ja.", "a"], ["b", "c"]]).numpy().tolist() == [[b"Ja .", b"a"], [b"b", b"c"]]


def test_moses_is_refused_in_graphs_with_the_way_out(tmp_path):
    tokenizer = PreprocessedTokenizer([MosesTokenization("en")], WhitespaceTokenizer(tidy=False))
    assert not tokenizer.runs_in_graphs
    message = (
        "MosesTokenization runs in Python .*outside of the graph; or train on raw .*`SentenceP"
    )
    with pytest.raises(ValueError, match=message):
        tf.function(tokenizer.tokenize)(tf.constant(["a"]))
    with pytest.raises(ValueError, match=message):
        tf.function(tokenizer.detokenize)(tf.constant(["a"]))
    # The way out: the tokenizer behind it in the graph, and the steps outside of it.
    words = tf.function(tokenizer.tokenizer.tokenize)(tokenizer.preprocess(["It's here."]))
    assert words.to_list() == tokenizer.tokenize(["It's here."]).to_list()
    text = tf.function(tokenizer.tokenizer.detokenize)(words)
    assert tokenizer.undo(text).numpy().tolist() == [b"It's here."]
    with pytest.raises(ValueError, match="MosesPunctuation runs in Python"):
        tf.data.Dataset.from_tensors("a").map(MosesPunctuation("en"))


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(ImportError, match=r"pip install keras_drill\[translation\]"):
        MosesTokenization("de")


TOKENIZERS = {
    "words": lambda lines: WordTokenizer(lowercase=False, normalization="NFC"),
    "whitespace": lambda lines: WhitespaceTokenizer(tidy=False),
    "bpe": lambda lines: SentencePieceTokenizer.train(lines, 211),
    "word pieces": lambda lines: WordPieceTokenizer.train(lines, 211),
}
STEPS = {
    "unicode, lower": lambda: [UnicodeNormalization("NFKC"), Lowercase()],
    "lower, moses": lambda: [Lowercase(), MosesPunctuation("en"), MosesTokenization("en")],
}


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_every_step_before_every_tokenizer(tmp_path, steps, tokenizer):
    (tmp_path / "text").write_text("\n".join(LINES) + "\n")
    lines = TextLines(tmp_path / "text")
    steps = STEPS[steps]()
    prepared = PreprocessedLines(lines, steps)
    inner = TOKENIZERS[tokenizer](prepared)
    made = PreprocessedTokenizer(steps, inner)
    # One step after the other, by hand.
    text = tf.constant(LINES)
    for step in steps:
        text = step(text)
    assert list(prepared) == text.numpy().tolist()
    expected = inner.tokenize(text)
    assert made.tokenize(LINES).to_list() == expected.to_list()
    shown = inner.detokenize(expected)
    for step in reversed(steps):
        shown = step.undo(shown)
    assert strings(made.detokenize(expected)) == strings(shown)
    assert made.tokenize("An É").shape.rank == 1

    # Its configuration is all of it, and JSON.
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(made)))
    again = keras.saving.deserialize_keras_object(config)
    assert type(again) is PreprocessedTokenizer
    assert again.get_config() == made.get_config()
    assert again.tokenize(LINES).to_list() == expected.to_list()

    # Corpora are encoded with it, whether it runs in graphs or not.
    vocabulary = Vocabulary.build(lines, made)
    encoded = EncodedText.encode(lines, made, vocabulary, cache=tmp_path / "cache")
    assert (encoded.ids != vocabulary.unknown_id).all()
    np.testing.assert_array_equal(
        encoded.ids, EncodedText.encode(prepared, inner, vocabulary, cache=tmp_path / "cache").ids
    )
    assert len(list((tmp_path / "cache").iterdir())) == 4  # an entry and its lock, each
    if made.runs_in_graphs:
        traced = tf.function(made.tokenize, input_signature=[tf.TensorSpec([None], tf.string)])
        assert traced(tf.constant(LINES)).to_list() == expected.to_list()


def test_the_inverse_restores_sentences():
    prose = ["Mr. Smith can't come, e.g. to the (small) house!", "“No” is an answer."]
    steps = [MosesPunctuation("en"), MosesTokenization("en")]
    tokenizer = PreprocessedTokenizer(steps, WhitespaceTokenizer(tidy=False))
    assert strings(tokenizer.detokenize(tokenizer.tokenize(prose))) == [
        prose[0],
        '"No" is an answer.',
    ]
    french = PreprocessedTokenizer([MosesTokenization("fr")], WhitespaceTokenizer(tidy=False))
    assert french.detokenize(french.tokenize("Il n'est pas là ?")).numpy().decode() == (
        "Il n'est pas là ?"
    )


def test_lines_are_told_apart_by_their_preprocessing(tmp_path):
    (tmp_path / "text").write_text("A\n")
    lines = TextLines(tmp_path / "text")
    steps = [[], [Lowercase()], [UnicodeNormalization("NFC")], [UnicodeNormalization("NFKC")]]
    prints = {PreprocessedLines(lines, some).fingerprint() for some in steps}
    assert len(prints) == 4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UnicodeNormalization("nfc"), "`form` must be one of .*Received: form='nfc'"),
        (lambda: MosesTokenization("German!"), "`language` must be .*Received: language='German!'"),
        (
            lambda: PreprocessedTokenizer([str.lower], WordTokenizer()),
            "`preprocessing` must be `Preprocessing` objects",
        ),
        (
            lambda: PreprocessedTokenizer([], ["the"]),
            r"`tokenizer` must be .*Received: .*\['the'\]",
        ),
    ],
)
def test_wrong_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()
