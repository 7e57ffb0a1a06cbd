"""Tasks that answer a source: each is a folder of its own, and no other code knows it."""

from pathlib import Path

import numpy as np
import pytest

import keras_drill
from keras_drill.workbench.cli.main import main
from keras_drill.workbench.tasks.errors import ConfigError
from keras_drill.workbench.tasks.load_config import CONFIGS, config_class
from keras_drill.workbench.tasks.make_task import make_task
from tests.workbench.training.tiny import write_corpus
from tests.workbench.training.tiny_pairs import TINY

PACKAGE = Path(keras_drill.__file__).parent
DIALOGUES = [
    "Hello . __eou__ Hi ! __eou__ How are you ? __eou__ Fine . __eou__",
    "Who is there ? __eou__ It is me . __eou__",
]


def config_of(task, data, **changes):
    named = {name.replace("_", ".", 1): value for name, value in changes.items()}
    return config_class(task).replace(
        config_class(task)(), {**TINY, "data.path": str(data), **named}
    )


@pytest.fixture
def dialogues(tmp_path):
    for split, lines in {
        "train": DIALOGUES * 7,
        "valid": DIALOGUES[:1],
        "test": DIALOGUES[1:],
    }.items():
        lines = [line.replace("Hello", f"Hello{split}") for line in lines]
        (tmp_path / f"dialogues_{split}.txt").write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def test_the_source_of_a_response_are_the_turns_before_it(dialogues, tmp_path):
    config = config_of("dialog", dialogues, data_context_turns=2, data_vocabulary_size=70)
    task = make_task(config)
    words = task.make_vocabulary(tmp_path / "new")
    texts = task.read_texts(words)
    assert list(texts) == ["train", "valid", "test"]
    sources = [line.decode() for line in texts["valid"].lines.source]
    assert sources == [
        "Hellovalid .",
        "Hellovalid . __eou__ Hi !",
        "Hi ! __eou__ How are you ?",
    ]
    # The other dialogue is the test text, and so no training text.
    targets = [line.decode() for line in texts["train"].lines.target]
    assert targets == ["Hi !", "How are you ?", "Fine ."] * 7
    pieces = words.source.tokenizer.tokenize(sources[1:2]).to_list()[0]
    assert [piece for piece in pieces if b"__eou__" in piece] == [b"__eou__"]
    assert task.describe(words, texts).endswith("pairs: 21 of train, 3 of valid, 1 of test")


@pytest.mark.slow
@pytest.mark.parametrize("tokenizer", ["bpe", "words"])
def test_of_a_long_context_the_oldest_turns_are_cut_wherever_it_is_read(
    tokenizer, tmp_path, capsys
):
    old = " __eou__ ".join(["who is there ?", "it is me ."] * 9)
    for split in ("train", "valid", "test"):
        lines = [f"{old} __eou__ {split} {word} __eou__ yes {word}" for word in ("fine", "good")]
        (tmp_path / f"{split}.txt").write_text("\n".join(lines) + "\n")
    longest = 60 if tokenizer == "bpe" else 23
    config = config_of(
        "dialog",
        tmp_path,
        data_tokenizer=tokenizer,
        data_context_turns=30,
        data_vocabulary_size=50,
        data_max_length=longest,
    )
    task = make_task(config)
    words = task.make_vocabulary(tmp_path / "none")
    texts = task.read_texts(words)
    translator = task.translator(task.build_model(words), words, task.make_search())
    side = translator.source
    separator = side.separator_id("__eou__")
    for batches, text in (
        (task.training_batches(words, texts["train"]), texts["train"]),
        (task.evaluation_batches(words, texts["test"]), texts["test"]),
    ):
        sources = [line.decode() for line in text.lines.source]
        expected = side.encode(sources, longest, "left", separator)[0].numpy()
        np.testing.assert_array_equal(translator.find(sources)[0], expected)
        seen = [row for inputs, *_ in batches.dataset() for row in inputs["source"].numpy()]
        trimmed = sorted(tuple(row[row != 0]) for row in seen)
        assert trimmed == sorted(tuple(row[row != 0]) for row in expected)
        whole, lengths = (x.numpy() for x in side.encode(sources))
        assert lengths.max() > longest
        for row, length, kept in zip(whole, lengths, expected, strict=True):
            kept = kept[kept != 0]
            assert (row[length - len(kept) : length] == kept).all()
            assert len(kept) == length or row[length - len(kept) - 1] == separator
    said = capsys.readouterr().err
    assert (
        said.count("lose their oldest turns") == 1 and f"data.max_length = {longest} tokens" in said
    )
    assert "pairs are truncated" not in said and "dropped" not in said


def test_the_target_of_an_autoencoder_is_its_source(tmp_path):
    config = config_of("autoencoder", write_corpus(tmp_path / "text"), data_tokenizer="words")
    task = make_task(config)
    words = task.make_vocabulary(tmp_path / "new")
    text = task.read_texts(words)["valid"]
    assert text.source.ids.tolist() == text.target.ids.tolist()
    assert task.build_model(words).backbone.attention is None
    with pytest.raises(ConfigError, match="shared_vocabulary must be true"):
        config.replace({"data.shared_vocabulary": False})


@pytest.mark.parametrize("tokenizer", ["bpe", "unigram", "wordpiece", "words", "whitespace"])
@pytest.mark.parametrize("shared", [True, False])
def test_words_are_the_same_after_saving(tokenizer, shared, tmp_path):
    config = config_of(
        "dialog",
        tmp_path,
        data_tokenizer=tokenizer,
        data_shared_vocabulary=shared,
        data_vocabulary_size=50,
    )
    for split in ("train", "valid"):
        lines = [f"a{i} says hello __eou__ b{i % 3} answers __eou__\n" for i in range(9)]
        (tmp_path / f"{split}.txt").write_text("".join(lines) if split == "train" else lines[0])
    task = make_task(config)
    words = task.make_vocabulary(tmp_path / "none")
    words.save(tmp_path)
    loaded = task.load_vocabulary(tmp_path)
    assert loaded.fingerprint == words.fingerprint and loaded.tokens == words.tokens
    assert loaded.counts == words.counts and sum(words.counts) > 0
    texts = [task.read_texts(one)["train"].source.ids.tolist() for one in (words, loaded)]
    assert texts[0] == texts[1]
    assert (loaded.source is loaded.target) == shared


def test_only_lists_of_tasks_know_a_certain_task():
    names = [f"tasks.{one.task.replace('-', '_')}" for one in CONFIGS]
    for folder in ("training", "cli", "report", "export"):
        for path in (PACKAGE / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            assert not [name for name in names if name in text], path


@pytest.mark.slow
@pytest.mark.parametrize("task", ["dialog", "autoencoder"])
def test_a_run_is_trained_evaluated_and_answers(task, dialogues, tmp_path, capsys):
    data = dialogues if task == "dialog" else write_corpus(tmp_path / "text")
    config = config_of(task, data, training_epochs=1)
    (tmp_path / "run.toml").write_text(config.to_toml())
    assert main(["train", str(tmp_path / "run.toml"), "--run", str(tmp_path / "run")]) == 0
    assert "test BLEU" in capsys.readouterr().out
    assert main(["answer", str(tmp_path / "run"), "Who is there ?"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert main(["evaluate", str(tmp_path / "run")]) == 0
    assert main(["export", str(tmp_path / "run"), "--directory", str(tmp_path / "saved")]) == 0
