"""A perfect system scores 100, or it is said what it can score and why, whatever words it has."""

import unicodedata

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("sacrebleu")

import sacrebleu

from keras_drill.export import Side
from keras_drill.workbench.tasks.answer import Answer
from keras_drill.workbench.tasks.make_task import make_task
from keras_drill.workbench.tasks.sequence_to_sequence import task as task_module
from keras_drill.workbench.tasks.sequence_to_sequence.ceiling import Ceiling
from tests.workbench.tasks.test_tasks import config_of

RAW = [
    "The old Man doesn't see 1,000 dogs (or so).",
    "Is it well-known, e.g. in Köln? Yes!",
    'He said: "Straße" and "Fluß" are words; THAT is all.',
    "A cat, a dog and 3.5 birds: the end.",
    "Nobody knows O'Brien's dog.",
]
PLAIN = [line.replace("e.g.", "then") for line in RAW]
TOKENIZED = [
    "The old Man does n't see 1 @,@ 000 dogs ( or so ) .",
    "Is it well @-@ known , e.g. in Köln ? Yes !",
    "He said : `` Straße '' and ` Fluß ' are words ; THAT is all .",
    "A cat , a dog and 3.5 birds : the end .",
    "Nobody knows O 'Brien 's dog 's ' tail .",
]


def make(folder, lines, task="translation", **options):
    for split in ("train", "valid", "test"):
        for language in ("de", "en") if task == "translation" else ("txt",):
            (folder / f"{split}.{language}").write_text("\n".join(lines) + "\n")
    task = make_task(config_of(task, folder, data_vocabulary_size=240, **options))
    return task, task.make_vocabulary(folder / "none")


def through(side, lines):
    """The lines as a model would write them."""
    side = Side(side.tokenizer, side.vocabulary)
    return [text.decode() for text in side.decode(side.encode(tf.constant(lines))[0]).numpy()]


@pytest.mark.parametrize(
    ("tokenizer", "lines", "options", "lowercase"),
    [
        ("whitespace", TOKENIZED, {}, False),
        ("whitespace", TOKENIZED, {}, True),
        ("whitespace", RAW, {}, False),
        ("whitespace", RAW, {"moses": "en"}, False),
        ("whitespace", RAW, {"moses": "en"}, True),
        ("words", RAW, {}, False),
        (
            "words",
            [line.replace(" ", "  ") for line in RAW],
            {"unicode_normalization": "NFC"},
            True,
        ),
        ("wordpiece", PLAIN, {}, False),
        ("wordpiece", PLAIN, {}, True),
        ("bpe", RAW, {}, False),
        ("unigram", TOKENIZED, {}, True),
        ("bpe", RAW, {"moses": "en"}, True),
    ],
)
def test_a_perfect_system_scores_100(tokenizer, lines, options, lowercase, tmp_path):
    named = {f"data_{name}": value for name, value in options.items()}
    task, words = make(tmp_path, lines, data_tokenizer=tokenizer, data_lowercase=lowercase, **named)
    written = through(words.target, lines)
    expected = [line.lower() for line in lines] if lowercase else lines
    assert [" ".join(line.split()) for line in expected] == written
    bleu = sacrebleu.corpus_bleu(
        written,
        [lines],
        tokenize="none" if tokenizer == "whitespace" and not options else "13a",
        lowercase=lowercase,
        force=True,
    )
    ceiling = Ceiling.measure(words.target, lines, task.scoring)
    assert ceiling.bleu == pytest.approx(bleu.score) == pytest.approx(100)
    assert ceiling.chrf == pytest.approx(100)
    assert ceiling.is_reached and ceiling.unknown == 0


@pytest.mark.parametrize(
    ("options", "lines", "reasons"),
    [
        (
            {"data_tokenizer": "bpe", "data_lowercase": True, "decoding_score_lowercase": "false"},
            RAW,
            {"in case": 1.0},
        ),
        ({"data_tokenizer": "words"}, TOKENIZED, {"in white space": 1.0}),
        ({"data_tokenizer": "wordpiece"}, RAW, {"in white space": 0.2}),  # e. g.
        (
            {"data_tokenizer": "wordpiece", "data_unicode_normalization": "NFKC"},
            ["A ﬁne day.", "One day.", "Two ﬁne days.", "3 days of ﬁne days."],
            {"in how characters are written": 0.75},
        ),
    ],
)
def test_the_ceiling_says_why_it_is_none(options, lines, reasons, tmp_path):
    task, words = make(tmp_path, lines, **options)
    ceiling = Ceiling.measure(words.target, lines, task.scoring)
    bleu = sacrebleu.corpus_bleu(through(words.target, lines), [lines], force=True)
    chrf = sacrebleu.corpus_chrf(through(words.target, lines), [lines])
    assert (ceiling.bleu, ceiling.chrf) == pytest.approx((bleu.score, chrf.score))
    assert not ceiling.is_reached and ceiling.changes == reasons
    for reason, share in reasons.items():
        assert f"{100 * share:.1f} % differ {reason}" in str(ceiling)


def test_unknown_words_are_counted(tmp_path):
    task, words = make(tmp_path, RAW, data_tokenizer="whitespace")
    lines = ["The old Man and the Sea", "dog."]
    ceiling = Ceiling.measure(words.target, lines, task.scoring)
    assert ceiling.unknown == 1 / 7 and "14.3 % of their tokens are unknown" in str(ceiling)
    assert ceiling.changes == {} and not ceiling.is_reached


@pytest.mark.parametrize(
    ("task", "tokenizer", "lowercase"),
    [
        ("translation", "words", False),
        ("translation", "whitespace", True),
        ("autoencoder", "whitespace", False),
        ("dialog", "bpe", True),
    ],
)
def test_training_and_evaluation_score_alike(
    task, tokenizer, lowercase, tmp_path, monkeypatch, capsys
):
    """What is printed for right answers, in validation and at the end, is sacrebleu's."""
    task, words = make(
        tmp_path,
        [f"{line} __eou__ {line} __eou__" for line in PLAIN] if task == "dialog" else PLAIN * 3,
        task,
        data_tokenizer=tokenizer,
        data_lowercase=lowercase,
        decoding_validation_sentences=7,
        decoding_attention_maps=0,
        **({"data_drop_repeated": False} if task == "dialog" else {}),
    )
    texts = task.read_texts(words)
    right = through(words.target, [line.decode() for line in texts["test"].lines.target])
    monkeypatch.setattr(task, "_log_probs", lambda *_: {"test": np.log([0.5])})
    monkeypatch.setattr(task, "translator", lambda *_: None)
    monkeypatch.setattr(
        task_module,
        "answer_all",
        lambda _, sources, **__: [
            Answer((text,), (0.0,), (0.0,), (False,), False) for text in right
        ][: len(sources)],
    )
    scores = task.validation_scores(None, words, texts)
    assert scores == {"val_bleu": pytest.approx(100), "val_chrf": pytest.approx(100)}
    evaluated = task.evaluate(None, words, {"test": texts["test"]})
    assert list(evaluated.scores.values()) == pytest.approx([100, 100])
    assert evaluated.text_scores.exact_match == pytest.approx(100)
    case = "lc" if lowercase else "mixed"
    assert f"|case:{case}|" in evaluated.text_scores.bleu_signature
    assert f"|tok:{'none' if tokenizer == 'whitespace' else '13a'}|" in (
        evaluated.text_scores.bleu_signature
    )
    page = "".join(
        "".join(part.itertext()) for part in task.sections([words], {"a": evaluated}, {})
    )
    assert "100.00" in page and "themselves" not in page + capsys.readouterr().out


def test_the_written_options_are_what_happens(tmp_path):
    task, _ = make(tmp_path, TOKENIZED, data_tokenizer="whitespace", data_lowercase=True)
    written = task.config.resolved().to_toml()
    assert 'tokenize = "none"' in written and 'score_lowercase = "true"' in written
    explicit = task.config.replace({"decoding.tokenize": "13a", "decoding.score_lowercase": False})
    assert explicit.resolved() == explicit
    assert make_task(explicit).scoring == {"tokenize": "13a", "lowercase": False}


def test_words_of_a_run_from_before_lower_case_as_they_did(tmp_path):
    """`WordTokenizer()` was what data.tokenizer = "words" made, whatever data.lowercase was."""
    task, words = make(tmp_path, RAW, data_tokenizer="words")
    assert words.target.tokenizer.get_config() == {"lowercase": False, "normalization": None}
    folder = tmp_path / "run"
    folder.mkdir()
    words.save(folder)
    (folder / "tokenizer.json").write_text('{"lowercase": true, "normalization": "NFKC"}')
    loaded = task.load_vocabulary(folder)
    assert through(loaded.target, ["ＴＨＥ dog"]) != ["ＴＨＥ dog"]
    assert loaded.target.tokenizer.tokenize("ＴＨＥ").numpy() == [b"the"]
    ceiling = Ceiling.measure(loaded.target, RAW, task.scoring)
    assert "in case" in ceiling.changes or ceiling.unknown
    assert unicodedata.normalize("NFKC", "ＴＨＥ") == "THE"
