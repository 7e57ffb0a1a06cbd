import collections
import math
import random
import sys

import pytest

sacrebleu = pytest.importorskip("sacrebleu")

from keras_drill.metrics import count_words, distinct_n, score_texts  # noqa: E402

WORDS = "a the man woman dog runs sits on grass red , blue hat with"


def made_up(sentences=53, seed=3):
    """References, and texts that differ from them here and there."""
    rng = random.Random(seed)
    references = [
        " ".join(rng.choices(WORDS.split(), k=rng.randint(1, 17))) + "." for _ in range(sentences)
    ]
    hypotheses = [
        " ".join(rng.choice(WORDS.split()) if rng.random() < 0.3 else word for word in text.split())
        for text in references
    ]
    return hypotheses, references


def plain_bleu(hypotheses, references, order):
    """BLEU as the paper has it, on words with spaces between, one reference each."""
    right, written = collections.Counter(), collections.Counter()
    lengths = [0, 0]
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        hypothesis, reference = hypothesis.split(), reference.split()
        lengths = [lengths[0] + len(hypothesis), lengths[1] + len(reference)]
        for n in range(1, order + 1):
            ours, theirs = (
                collections.Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
                for words in (hypothesis, reference)
            )
            right[n] += (ours & theirs).total()
            written[n] += ours.total()
    mean = sum(math.log(right[n] / written[n]) for n in range(1, order + 1)) / order
    return 100 * math.exp(mean + min(0, 1 - lengths[1] / lengths[0]))


def test_scores_are_those_of_the_papers_formula():
    hypotheses, references = made_up()
    hypotheses[0] = ""  # a brevity penalty
    scores = score_texts(hypotheses, references, tokenize="none")
    assert scores.bleu == pytest.approx(plain_bleu(hypotheses, references, 4))
    assert scores.bleu_1 == pytest.approx(plain_bleu(hypotheses, references, 1))
    assert 0 < scores.bleu < scores.bleu_1 < 100
    lengths = [sum(len(text.split()) for text in texts) for texts in (hypotheses, references)]
    assert scores.length_ratio == lengths[0] / lengths[1] < 1
    equal = sum(a == b for a, b in zip(hypotheses, references, strict=True))
    assert scores.exact_match == pytest.approx(100 * equal / 53)


@pytest.mark.parametrize("lowercase", [False, True])
def test_scores_and_signatures_are_sacrebleus(lowercase):
    hypotheses, references = made_up()
    hypotheses = [text.upper() if place % 5 == 0 else text for place, text in enumerate(hypotheses)]
    scores = score_texts(hypotheses, references, lowercase=lowercase)
    bleu, chrf = (
        sacrebleu.BLEU(lowercase=lowercase),
        sacrebleu.CHRF(lowercase=lowercase),
    )
    one = sacrebleu.BLEU(lowercase=lowercase, max_ngram_order=1)
    assert scores.bleu == bleu.corpus_score(hypotheses, [references]).score
    assert scores.bleu_1 == pytest.approx(one.corpus_score(hypotheses, [references]).score)
    assert scores.chrf == chrf.corpus_score(hypotheses, [references]).score
    assert scores.bleu_signature == str(bleu.get_signature())
    assert f"case:{'lc' if lowercase else 'mixed'}|" in scores.chrf_signature


@pytest.mark.parametrize(("lowercase", "expected"), [(False, 25), (True, 50)])
def test_exact_matches_ignore_spaces_and_if_asked_for_case(lowercase, expected):
    hypotheses = ["a  dog ", "A dog", "a dogs", "the cat"]
    found = score_texts(hypotheses, ["a dog"] * 4, lowercase=lowercase)
    assert found.exact_match == expected and found.sentences == 4


@pytest.mark.parametrize(("number", "is_warned_of"), [(49, True), (50, False)])
def test_references_alone_are_tokenized_where_fewer_than_half_of_the_texts_are(
    number, is_warned_of, recwarn
):
    hypotheses = ["a dog ."] * number + ["a dog."] * (100 - number)
    score_texts(hypotheses, ["a dog ."] * 100)
    assert bool(recwarn) == is_warned_of


def test_texts_that_look_tokenized_are_warned_of_once(caplog):
    texts = ["A dog runs ."] * 100
    with pytest.warns(UserWarning, match=r"end in ' \.'") as caught:
        assert score_texts(texts, texts).bleu == pytest.approx(100)
    assert len(caught) == 1 and not caplog.records  # sacrebleu has nothing to add


@pytest.mark.parametrize(
    ("text", "number", "tokenize"),
    [("A dog runs .", 99, "13a"), ("A dog runs.", 100, "13a"), ("A dog runs .", 100, "none")],
)
def test_other_texts_are_not_warned_of(text, number, tokenize, recwarn, caplog):
    score_texts([text] * number, [text] * number, tokenize)
    assert not recwarn and not caplog.records


def test_texts_may_have_different_numbers_of_references():
    hypotheses = ["the dog sits", "a man runs", "red hat"]
    references = [["a cat", "the dog sits"], "a man sat", ["blue", "a", "red hat "]]
    scores = score_texts(hypotheses, references)
    streams = [
        ["a cat", "a man sat", "blue"],
        ["the dog sits", None, "a"],
        [None, None, "red hat "],
    ]
    assert scores.bleu == sacrebleu.BLEU().corpus_score(hypotheses, streams).score
    assert scores.exact_match == pytest.approx(200 / 3)
    assert "nrefs:var" in scores.bleu_signature


@pytest.mark.parametrize(
    ("hypotheses", "references", "ratio"),
    [(["", ""], ["a b", "c"], 0), (["a"], [""], math.nan), ([""], [""], math.nan)],
)
def test_empty_texts_score_nothing(hypotheses, references, ratio):
    scores = score_texts(hypotheses, references)
    assert scores.bleu == scores.bleu_1 == scores.chrf == 0
    assert scores.length_ratio == pytest.approx(ratio, nan_ok=True)


def test_distinct_n_counts_ngrams_within_texts():
    texts = ["a b a b", "a b", "", "c"]
    assert distinct_n(texts, 1) == 3 / 7
    assert distinct_n(texts, 2) == 2 / 4  # no pair across texts
    assert distinct_n(texts, 3) == 2 / 2
    assert math.isnan(distinct_n(texts, 5))


def test_words_are_those_of_bleu():
    counts = count_words(["A dog, a dog-sitter.", "Ein Hündchen!"], lowercase=True)
    assert counts == {
        "a": 2, "dog": 1, ",": 1, "dog-sitter": 1, ".": 1, "ein": 1, "hündchen": 1, "!": 1,
    }  # fmt: skip
    assert count_words(["A dog."], tokenize="none") == {"A": 1, "dog.": 1}
    assert count_words(["狗跑"], tokenize="zh") == {"狗": 1, "跑": 1}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: score_texts([], []), "`hypotheses` and `references` must have the same length"),
        (lambda: score_texts(["a"], ["a", "b"]), "must have the same length"),
        (lambda: score_texts("a", "a"), "must be sequences of texts"),
        (lambda: score_texts([b"a"], ["a"]), "`hypotheses` must be strings"),
        (
            lambda: score_texts(["a", "b"], ["a", []]),
            r"Received: hypotheses\[1\]='b', references\[1\]",
        ),
        (lambda: score_texts(["a"], ["a"], tokenize="14b"), "`tokenize` must be one of .*13a"),
        (lambda: distinct_n(["a"], 0), "`n` must be at least 1"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message) as raised:
        call()
    assert "Received" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "reference", "options", "message"),
    [
        ("a dog.", "A dog.", {}, "none of the `hypotheses` does"),
        ("a dog.", "A dog.", {"lowercase": True}, None),
        ("A dog.", "A dog .", {}, "`hypotheses` do not"),
        ("A dog.", "A dog .", {"tokenize": "none"}, "`hypotheses` do not"),
        ("A dog .", "A dog .", {"tokenize": "none"}, None),
        ("", "A dog .", {}, None),
    ],
)
@pytest.mark.parametrize("number", [99, 100])
def test_texts_that_went_through_other_steps_are_warned_of(
    text, reference, options, message, number, recwarn
):
    score_texts([text] * number, [reference] * number, **options)
    warned = [str(one.message) for one in recwarn]
    assert len(warned) == (message is not None and number == 100)
    assert all(message in one for one in warned)


def test_without_sacrebleu_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(ImportError, match=r"pip install keras_drill\[translation\]"):
        score_texts(["a"], ["a"])
