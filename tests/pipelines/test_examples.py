"""Runs on the pipeline's examples are runs on the corpus that they were made of."""

import json
from pathlib import Path

import pytest

from keras_drill.data.example_folder import ExampleFolder
from keras_drill.workbench.cli.main import main as keras_drill_main
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.tasks.make_task import make_task
from pipelines.components.example_gen import ExampleGen
from pipelines.components.transform import Transform
from pipelines.options import ExampleGenOptions
from tests.pipelines.corpora import TASKS, tiny_task

SLOW = ("translation", "autoencoder")


def nothing(*told):
    pass


def make(component, folder, **inputs):
    folder.mkdir()
    return component.run(inputs, folder, nothing)


@pytest.fixture
def made(tmp_path):
    """Makes examples and ids of a task's tiny corpus: the options, and the two folders."""

    def make_both(task, **changes):
        config = tiny_task(task, tmp_path / "corpus", **changes)
        examples, transformed = tmp_path / "examples", tmp_path / "transformed"
        make(ExampleGen(make_task(config), config.data.path), examples)
        make(Transform(make_task(config)), transformed, examples=examples)
        return config, examples, transformed

    return make_both


def texts_of(config, folder):
    task = make_task(config)
    words = task.make_vocabulary(folder / "new")
    return task, words, task.read_texts(words)


@pytest.mark.parametrize(
    "task",
    [pytest.param(task, marks=[pytest.mark.slow] * (task in SLOW)) for task in TASKS],
)
def test_examples_are_read_as_the_corpus_is(task, made, tmp_path):
    config, *folders = made(task)
    of_corpus, words, texts = texts_of(config, tmp_path)
    for folder in folders:
        task, same_words, same_texts = texts_of(
            config.replace({"data.path": str(folder)}), tmp_path
        )
        assert same_words.fingerprint == words.fingerprint
        assert same_words.counts == words.counts
        assert list(same_texts) == list(texts)
        assert task.fingerprint(same_texts) == of_corpus.fingerprint(texts)
        if task.needs_lines:
            lines, same = (list(each["valid"].lines) for each in (texts, same_texts))
            assert same == lines and lines


@pytest.mark.slow
@pytest.mark.parametrize("tokenizer", ["bpe", "wordpiece"])
def test_pieces_are_learned_once(tokenizer, made, tmp_path):
    config, _, transformed = made("translation", data_tokenizer=tokenizer)
    _, words, texts = texts_of(config, tmp_path)
    task, same_words, same_texts = texts_of(
        config.replace({"data.path": str(transformed)}), tmp_path
    )
    assert same_words.fingerprint == words.fingerprint
    assert task.fingerprint(same_texts) == task.fingerprint(texts)


def test_ids_of_other_words_are_refused(made, tmp_path):
    config, _, transformed = made("language-model")
    config = config.replace({"data.path": str(transformed), "data.tokenizer": "words"})
    with pytest.raises(RunError, match=r"transformed were encoded with another vocabulary or tok"):
        texts_of(config, tmp_path)


def test_splits_of_a_text_without_splits(tmp_path):
    config = tiny_task("language-model", tmp_path / "corpus")
    lines = [f"line {number} of the text" for number in range(400)]
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    facts = make(ExampleGen(make_task(config), str(path)), tmp_path / "a")
    assert sum(facts[f"{split} examples"] for split in ("train", "valid", "test")) == 400
    path.write_text("".join(f"{line}\n" for line in ["first", *reversed(lines)]))
    make(ExampleGen(make_task(config), str(path)), tmp_path / "b")
    first, second = (ExampleFolder(tmp_path / name) for name in "ab")
    for split in first.splits:
        once, again = (set(each.lines(split, "text")) for each in (first, second))
        assert once == again - {b"first"}


def test_shards(tmp_path):
    config = tiny_task("language-model", tmp_path / "corpus")
    Path(config.data.path, "train.txt").write_text("a line of the text\n" * 100_000)
    options = ExampleGenOptions(shard_megabytes=1)
    make(ExampleGen(make_task(config), config.data.path, options=options), tmp_path / "examples")
    folder = ExampleFolder(tmp_path / "examples")
    assert [path.name for path in folder.splits["train"]] == [
        f"data_tfrecord-{number:05d}-of-00004.gz" for number in range(4)
    ]
    assert sum(1 for _ in folder.lines("train", "text")) == 100_000


def test_the_fingerprint_is_of_the_content_and_the_options(tmp_path):
    config = tiny_task("dialog", tmp_path / "corpus")
    other = config.replace({"data.context_turns": 2})
    settings = [ExampleGen(make_task(one), one.data.path).settings() for one in (config, other)]
    assert settings[0] != settings[1] and json.dumps(settings)
    moved = tmp_path / "moved"
    Path(config.data.path).rename(moved)
    assert ExampleGen(make_task(config), str(moved)).settings() == settings[0]
    words = [Transform(make_task(one)).settings()["words"] for one in (config, other)]
    assert words[0]["symbols"] == () and words[1]["symbols"] == ("__eou__",)
    faster = config.replace({"optimizer.learning_rate": 0.5, "data.batch_tokens": 64})
    assert Transform(make_task(faster)).settings() == Transform(make_task(config)).settings()


@pytest.mark.slow
def test_the_command_line_trains_on_examples(made, tmp_path):
    config, _, transformed = made("language-model", training_epochs=1, training_deterministic=True)
    for name, data in (("of_corpus", config.data.path), ("of_ids", transformed)):
        (tmp_path / f"{name}.toml").write_text(config.to_toml())
        words = ["train", tmp_path / f"{name}.toml", "--data", data, "--run", tmp_path / name]
        assert keras_drill_main([str(word) for word in words]) == 0
    results = [tmp_path / name / "results.json" for name in ("of_corpus", "of_ids")]
    first, second = (json.loads(path.read_text()) for path in results)
    assert first["valid_perplexity"] == second["valid_perplexity"]
