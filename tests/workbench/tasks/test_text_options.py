"""What runs with pairs do to their text before it is cut, and pairs of tensorflow-datasets."""

import re
import unicodedata

import pytest
import sacremoses
import tensorflow as tf

from keras_drill.data import SentencePieceTokenizer, WordPieceTokenizer
from keras_drill.export import Side
from keras_drill.workbench.cli.main import main
from keras_drill.workbench.tasks.errors import ConfigError
from keras_drill.workbench.tasks.make_task import make_task
from tests.data.test_tfds_pairs import Builder, builders  # noqa: F401  a fixture
from tests.workbench.tasks.test_tasks import config_of
from tests.workbench.training.tiny_pairs import TINY, write_pairs

LINES = {
    "de": ["Ein Cafe\u0301, z.B. »hier«.", "Das ist's (nicht)!", "Über 3.000 Häuser, usw."],
    "en": ["A cafe\u0301, e.g. “here”.", "That isn't it!", "Over 3,000 houses, etc."],
}


@pytest.fixture
def pairs(tmp_path):
    for split, times in {"train": 5, "valid": 1, "test": 1}.items():
        for language, lines in LINES.items():
            (tmp_path / f"{split}.{language}").write_text("\n".join(lines * times) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    ("tokenizer", "shared", "options"),
    [
        ("whitespace", True, {"moses": "de-en", "unicode_normalization": "NFC"}),
        ("whitespace", False, {"moses": "en", "lowercase": True}),
        ("bpe", True, {"moses": "de-en", "lowercase": True}),
        ("bpe", False, {"moses": "de-en", "unicode_normalization": "NFKC"}),
        ("bpe", True, {"moses": "de"}),
        ("wordpiece", True, {"unicode_normalization": "NFD", "lowercase": True}),
        ("words", False, {"unicode_normalization": "NFKD"}),
        ("unigram", True, {"user_defined_symbols": ("<2en>",), "lowercase": True}),
        ("wordpiece", True, {"user_defined_symbols": ("<2EN>",), "lowercase": True}),
    ],
)
def test_text_is_preprocessed_and_words_are_the_same_after_saving(
    tokenizer, shared, options, pairs, tmp_path
):
    named = {f"data_{name}": value for name, value in options.items()}
    config = config_of(
        "translation",
        pairs,
        data_tokenizer=tokenizer,
        data_shared_vocabulary=shared,
        data_vocabulary_size=90,
        **named,
    )
    task = make_task(config)
    words = task.make_vocabulary(tmp_path / "none")
    folder = tmp_path / "saved"
    folder.mkdir()
    words.save(folder)
    loaded = task.load_vocabulary(folder)
    assert loaded.fingerprint == words.fingerprint and loaded.counts == words.counts
    plain = make_task(config.replace({f"data.{name}": "" for name in options if name == "moses"}))
    changed = plain.make_vocabulary(tmp_path / "none").fingerprint != words.fingerprint
    assert changed == ("moses" in options)
    for made in (words, loaded):
        assert (made.source.vocabulary is made.target.vocabulary) == shared
        assert (made.source.tokenizer is made.target.tokenizer) == config.data.shares_tokenizer
        assert len(made.source.vocabulary) > 20
        texts = task.read_texts(made)
        assert all((each.source.ids != 1).all() for each in texts.values())  # nothing is unknown
        for side, language in ((made.source, "de"), (made.target, "en")):
            _check_side(side, language, config.data, LINES[language])


def _check_side(side, language, options, lines):
    """Text and words are those of sacremoses itself."""
    if not options.moses:
        return
    language = options.moses.split("-")[language == "en" and "-" in options.moses]
    moses = sacremoses.MosesTokenizer(language)
    for line in lines:
        if options.unicode_normalization != "none":
            line = unicodedata.normalize(options.unicode_normalization, line)
        if options.lowercase and options.tokenizer == "whitespace":
            line = line.lower()
        expected = moses.tokenize(line, escape=False)
        words = side.tokenizer.tokenize(line)
        if options.tokenizer == "whitespace":
            assert [word.decode() for word in words.numpy()] == expected
        else:  # pieces, joined
            expected = [word.lower() for word in expected] if options.lowercase else expected
        joined = sacremoses.MosesDetokenizer(language).detokenize(expected, unescape=False)
        assert side.tokenizer.detokenize(words).numpy().decode() == joined


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ("translation", {"moses": "German"}, "data.moses must be a language such as 'en'"),
        ("translation", {"moses": "de-en", "tokenizer": "words"}, "data.moses must be empty with"),
        ("autoencoder", {"moses": "de-en"}, "data.moses must be one language"),
        ("dialog", {"unicode_normalization": "nfc"}, "unicode_normalization cannot be 'nfc'"),
        ("dialog", {"character_coverage": 0.9}, "data.character_coverage must be at least 0.98"),
        ("dialog", {"max_length_ratio": 0.5}, "data.max_length_ratio must be 0 or at least 1"),
        ("dialog", {"long_pairs": "keep"}, "data.long_pairs cannot be 'keep'"),
        ("dialog", {"user_defined_symbols": ("a b",)}, "must be different words without spaces"),
        ("dialog", {"user_defined_symbols": ("<pad>",)}, "other than <pad>"),
        (
            "translation",
            {"user_defined_symbols": ("<x>",), "tokenizer": "words"},
            "data.user_defined_symbols must be empty with data.tokenizer = 'words'",
        ),
        (
            "translation",
            {"tokenizer_model": "spm.model", "tokenizer": "whitespace"},
            "data.tokenizer_model must not name a file with data.tokenizer = 'whitespace'",
        ),
        (
            "translation",
            {"tokenizer_model": "a", "source_tokenizer_model": "b"},
            "data.source_tokenizer_model requires",
        ),
    ],
)
def test_what_cannot_be_is_refused(task, options, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        config_of(task, tmp_path, **{f"data_{name}": value for name, value in options.items()})


def test_a_context_keeps_its_marks_whole_after_moses(tmp_path):
    (tmp_path / "train.txt").write_text("Hi, you! __EOU__ I'm well. __EOU__ Good? __EOU__\n" * 9)
    (tmp_path / "valid.txt").write_text("Hi! __EOU__ Well? __EOU__\n")
    config = config_of(
        "dialog",
        tmp_path,
        data_moses="en",
        data_lowercase=True,
        data_tokenizer="whitespace",
        data_turn_end="__EOU__",
        data_context_turns=2,
    )
    words = make_task(config).make_vocabulary(tmp_path / "none")
    cut = words.source.tokenizer.tokenize("Hi, you! __EOU__ I'm well.").numpy()
    assert b" ".join(cut) == b"hi , you ! __eou__ i 'm well ."


TEXTS = ["他说，你好：ＡＢＣ ﬁne", "Straße é and e\u0301"]


@pytest.mark.parametrize("tokenizer", ["bpe", "unigram"])
@pytest.mark.parametrize("form", ["none", "NFC", "NFKC"])
def test_pieces_are_normalised_as_the_option_says(tokenizer, form, tmp_path):
    for name in ("train.de", "train.en"):
        (tmp_path / name).write_text("\n".join(TEXTS * 9) + "\n")
    config = config_of(
        "translation", tmp_path, data_tokenizer=tokenizer, data_unicode_normalization=form
    )
    side = make_task(config).make_vocabulary(tmp_path / "none").target
    exported = Side(side.tokenizer, side.vocabulary)
    read = tf.function(lambda texts: exported.decode(exported.encode(texts)[0]))
    expected = [text if form == "none" else unicodedata.normalize(form, text) for text in TEXTS]
    assert [text.decode() for text in read(tf.constant(TEXTS)).numpy()] == expected


def test_a_vocabulary_too_small_is_told_with_the_size_that_works(pairs, tmp_path):
    for tokenizer in ("bpe", "unigram", "wordpiece"):
        config = config_of("translation", pairs, data_tokenizer=tokenizer, data_vocabulary_size=9)
        with pytest.raises(ConfigError, match=r"drops rare characters\. Received: 9") as caught:
            make_task(config).make_vocabulary(tmp_path / "none")
        least = re.search(r"option data.vocabulary_size must be at least (\d+)", str(caught.value))
        enough = config.replace({"data.vocabulary_size": least[1]})
        assert len(make_task(enough).make_vocabulary(tmp_path / "none").tokens) > 30


@pytest.mark.parametrize(("coverage", "is_there"), [(1.0, True), (0.98, False)])
def test_rare_characters_are_left_out_by_coverage(coverage, is_there, tmp_path):
    for split in ("train", "valid", "test"):
        for language in ("de", "en"):
            (tmp_path / f"{split}.{language}").write_text("ab ba\n" * 97 + "abŵ\n")
    config = config_of(
        "translation",
        tmp_path,
        data_tokenizer="bpe",
        data_vocabulary_size=23,
        data_character_coverage=coverage,
    )
    tokens = make_task(config).make_vocabulary(tmp_path / "none").tokens
    assert any("ŵ" in token for token in tokens) == is_there


@pytest.mark.parametrize("tokenizer", ["unigram", "wordpiece"])
@pytest.mark.parametrize("shared", [True, False])
def test_an_existing_tokenizer_is_taken(tokenizer, shared, pairs, tmp_path):
    kind = WordPieceTokenizer if tokenizer == "wordpiece" else SentencePieceTokenizer
    given = [kind.train(LINES[language] * 5, size) for language, size in (("en", 85), ("de", 75))]
    options = {"data_tokenizer_model": tmp_path / "en.model"}
    if not shared:
        options["data_source_tokenizer_model"] = tmp_path / "de.model"
    for one, name in zip(given, ("en.model", "de.model"), strict=True):
        one.save(tmp_path / name)
    options = {name: str(path) for name, path in options.items()}
    config = config_of(
        "translation",
        pairs,
        data_tokenizer=tokenizer,
        data_shared_vocabulary=shared,
        data_lowercase=True,
        **options,
    )
    task = make_task(config)
    words = task.make_vocabulary(tmp_path / "none")
    target, source = given if not shared else (given[0], given[0])
    assert list(words.target.vocabulary.tokens[4:]) == target.pieces()
    assert list(words.source.vocabulary.tokens[4:]) == source.pieces()
    # A model does not lower-case by itself; the option does.
    expected = target.tokenize("over houses").numpy().tolist()
    assert words.target.tokenizer.tokenize("OVER Houses").numpy().tolist() == expected
    settings = task.word_settings()
    (tmp_path / "en.model").write_bytes((tmp_path / "de.model").read_bytes())
    assert task.word_settings() != settings


def run_of(pairs, folder, *options):
    words = [word for name, value in TINY.items() for word in (f"--{name}", str(value).lower())]
    words += ["--training.epochs", "1"]
    command = ["train", "small-translation-tied", "--data", str(pairs), "--run", str(folder)]
    return main([*command, *_without_twice(words), *options])


def _without_twice(words):
    named = dict(zip(words[::2], words[1::2], strict=True))
    return [word for pair in named.items() for word in pair]


@pytest.mark.slow
def test_a_run_with_moses_does_all_but_export(tmp_path, capsys):
    pairs, run = write_pairs(tmp_path / "pairs"), tmp_path / "run"
    options = ["--data.moses", "de-en", "--data.unicode_normalization", "NFC"]
    assert run_of(pairs, run, *options, "--decoding.validation_sentences", "3") == 0
    assert main(["train", "--run", str(run), "--training.epochs", "2"]) == 0
    capsys.readouterr()
    assert main(["translate", str(run), "Der Hund.", "", "ein\u0308 Vogel,der"]) == 0
    answers = capsys.readouterr().out.splitlines()
    assert len(answers) == 3 and answers[0] and not answers[1]
    assert main(["translate", str(run), "ein\u0308 Vogel,der"]) == 0
    assert capsys.readouterr().out.splitlines() == answers[2:]
    assert main(["score", str(run), "Der Hund.\tThe dog, it's.", "\t"]) == 0
    assert "all 2 texts" in capsys.readouterr().out
    assert main(["evaluate", str(run)]) == 0
    assert "test BLEU" in capsys.readouterr().out
    assert main(["export", str(run), "--directory", str(tmp_path / "saved")]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "data.moses must be empty to export" in said
    assert not list((tmp_path / "saved").glob("*/*"))


@pytest.mark.slow
def test_a_run_with_normalisation_is_exported(tmp_path, capsys):
    pairs, run = write_pairs(tmp_path / "pairs"), tmp_path / "run"
    options = ["--data.lowercase", "true", "--data.unicode_normalization", "NFKC"]
    assert run_of(pairs, run, *options, "--data.tokenizer", "whitespace") == 0
    capsys.readouterr()
    assert main(["translate", str(run), "DER HUND", "ｄer hund"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert main(["export", str(run), "--directory", str(tmp_path / "saved")]) == 0
    exported = tf.saved_model.load(str(tmp_path / "saved" / "run" / "1"))
    found = exported.signatures["translate"](tf.constant(["DER HUND", "ｄer hund"]))["texts"]
    assert [row[0].decode() for row in found.numpy()] == [first, first]


def test_pairs_of_tensorflow_datasets_are_read(builders, tmp_path, capsys):  # noqa: F811
    builders["flores/de-en"] = Builder("flores/de-en")
    for task, source in (("translation", "ein Haus"), ("dialog", "ein Haus")):
        texts = make_task(config_of(task, "tfds:flores/de-en")).read_pairs("tfds:flores/de-en")
        assert next(iter(texts["train"]))[0].decode() == source
    status = main(
        ["train", "small-translation-tied", "--data", "tfds:flores/de-en"]
        + ["--data.source", "fr", "--run", str(tmp_path / "run")]
    )
    assert status == 1 and "two different features of flores/de-en" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_on_pairs_of_tensorflow_datasets(builders, tmp_path, capsys):  # noqa: F811
    builders["flores/de-en"] = Builder("flores/de-en")
    assert run_of("tfds:flores/de-en", tmp_path, "--data.tokenizer", "words") == 0
    assert main(["train", "--run", str(tmp_path), "--training.epochs", "2"]) == 0
    assert main(["evaluate", str(tmp_path), "--data", "tfds:flores/de-en"]) == 0
    assert "test BLEU" in capsys.readouterr().out
