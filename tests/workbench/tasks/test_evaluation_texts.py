"""What is given to be evaluated is evaluated as a whole, by every task and however it is given."""

import gzip

import pytest

from keras_drill.data import Corpus, DialogCorpus, ParallelCorpus
from keras_drill.data.write_examples import ExampleWriter
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.tasks.load_config import config_class
from keras_drill.workbench.tasks.make_task import make_task
from tests.workbench.training.tiny import TINY
from tests.workbench.training.tiny_pairs import TINY as TINY_PAIRS

LINES = [f"the cat sees {number % 7} dogs ." for number in range(61)]
DIALOGUES = [f"hello {number} __eou__ hi __eou__ bye __eou__" for number in range(29)]
PAIRS = [(f"der Hund {number % 5}", f"the dog {number % 5} .") for number in range(67)]
SPLITS = {
    "language-model": ("txt", LINES),
    "autoencoder": ("txt", LINES),
    "dialog": ("txt", DIALOGUES),
    "translation": ("tsv", ["\t".join(pair) for pair in PAIRS]),
}
NUM_LINES = {"language-model": 61, "autoencoder": 61, "dialog": 58, "translation": 67}
TASKS = list(SPLITS)


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """Each task with words that were learned from a corpus of its own."""
    made = {}
    for name, (suffix, lines) in SPLITS.items():
        folder = tmp_path_factory.mktemp(name)
        for split in ("train", "valid"):
            write(folder / f"{split}.{suffix}", lines if split == "train" else lines[:3])
        tiny = TINY if name == "language-model" else TINY_PAIRS
        options = {**tiny, "data.path": str(folder), "data.tokenizer": "whitespace"}
        if name == "translation":
            options |= {"data.source": "", "data.target": ""}
        task = make_task(config_class(name)().replace(options))
        made[name] = task, task.make_vocabulary(folder / "run")
    return made


def sizes(texts):
    return [(text.name, text.num_lines, text.num_targets) for text in texts]


@pytest.mark.parametrize("name", TASKS)
def test_a_file_is_one_text_named_by_its_file(name, tasks, tmp_path):
    task, words = tasks[name]
    suffix, lines = SPLITS[name]
    path = write(tmp_path / f"news.{suffix}", lines)
    (text,) = task.evaluation_texts(words, path)
    assert (text.name, text.num_lines) == (f"news.{suffix}", NUM_LINES[name])
    batches = task.evaluation_batches(words, text.encoded)
    assert batches.num_targets == text.num_targets == len(task.target_ids(text.encoded))
    targets = [line for lines in [text.columns[task.columns[-1]]] for line in lines]
    assert text.num_targets == sum(len(line.split()) + 1 for line in targets)
    assert path in text.described.origin
    compressed = tmp_path / f"more.{suffix}.gz"
    compressed.write_bytes(gzip.compress((tmp_path / f"news.{suffix}").read_bytes()))
    (other,) = task.evaluation_texts(words, [str(compressed)])
    assert sizes([other]) == [(compressed.name, text.num_lines, text.num_targets)]


@pytest.mark.parametrize("name", TASKS)
def test_of_a_folder_the_held_out_splits_are_evaluated(name, tasks, tmp_path):
    task, words = tasks[name]
    suffix, lines = SPLITS[name]
    whole = task.evaluation_texts(words, write(tmp_path / f"news.{suffix}", lines))
    for split in ("test", "valid", "train"):  # a folder may have any, and training text alone
        (tmp_path / split).mkdir()
        write(tmp_path / split / f"{split}.{suffix}", lines)
        found = task.evaluation_texts(words, str(tmp_path / split))
        assert sizes(found) == [(split, *sizes(whole)[0][1:])]
    for split in ("test", "train", "valid"):
        write(tmp_path / "test" / f"{split}.{suffix}", lines[: 11 if split == "valid" else None])
    valid, test = task.evaluation_texts(words, str(tmp_path / "test"))
    assert (valid.name, test.name) == ("valid", "test")
    assert sizes([test])[0][1:] == sizes(whole)[0][1:]
    (train,) = task.evaluation_texts(words, str(tmp_path / "test"), ["train"])
    assert (train.name, train.num_lines) == ("train", NUM_LINES[name])
    with pytest.raises(RunError, match="has no test text; it has valid"):
        task.evaluation_texts(words, str(tmp_path / "valid"), ["test"])


@pytest.mark.parametrize("name", TASKS)
def test_without_data_it_is_the_corpus_of_the_run(name, tasks):
    task, words = tasks[name]
    assert [text.name for text in task.evaluation_texts(words)] == ["valid"]


@pytest.mark.parametrize("name", TASKS)
def test_folders_without_any_text_are_refused(name, tasks, tmp_path):
    task, words = tasks[name]
    write(tmp_path / "news.doc", SPLITS[name][1])
    with pytest.raises(
        (ValueError, FileNotFoundError), match=r"no train, valid or test .* own file"
    ):
        task.evaluation_texts(words, str(tmp_path))


@pytest.mark.parametrize("name", ["autoencoder", "dialog", "language-model"])
def test_a_folder_of_texts_under_any_names_is_evaluated_as_a_whole(name, tasks, tmp_path):
    task, words = tasks[name]
    lines = SPLITS[name][1]
    (whole,) = task.evaluation_texts(words, write(tmp_path / "news.txt", lines))
    (tmp_path / "folder").mkdir()
    for file, part in {"a.txt": lines[:17], "b.txt": lines[17:]}.items():
        write(tmp_path / "folder" / file, part)
    (found,) = task.evaluation_texts(words, str(tmp_path / "folder"))
    assert found.name == "a.txt + b.txt"
    assert sizes([found])[0][1:] == sizes([whole])[0][1:]


def test_pairs_come_from_two_files_in_either_order(tasks, tmp_path):
    task, words = tasks["translation"]
    tsv = write(tmp_path / "news.tsv", SPLITS["translation"][1])
    (expected,) = task.evaluation_texts(words, tsv)
    files = [
        write(tmp_path / f"news.{end}", [pair[column] for pair in PAIRS])
        for column, end in enumerate(("de", "en"))
    ]
    (text,) = task.evaluation_texts(words, files)
    assert text.name == "news.de + news.en" and sizes([text])[0][1:] == sizes([expected])[0][1:]
    assert text.described.origin == " and ".join(files)
    options = {"data.source": "de", "data.target": "en"}
    named = make_task(task.config.replace(options))
    (swapped,) = named.evaluation_texts(words, files[::-1])
    assert swapped.encoded.target.ids.tolist() == text.encoded.target.ids.tolist()
    (tmp_path / "folder").mkdir()
    write(
        tmp_path / "folder" / "test.tsv", SPLITS["translation"][1]
    )  # though the run had languages
    assert sizes(named.evaluation_texts(words, str(tmp_path / "folder"))) == [
        ("test", *sizes([expected])[0][1:])
    ]
    with pytest.raises(ValueError, match="same number of lines"):
        task.evaluation_texts(words, [files[0], write(tmp_path / "short.en", ["one"])])


def test_examples_need_no_training_text(tasks, tmp_path):
    task, words = tasks["language-model"]
    with ExampleWriter(tmp_path, "test") as writer:
        writer.write({"text": [line.encode() for line in LINES]})
    (text,) = task.evaluation_texts(words, str(tmp_path))
    assert (text.name, text.num_lines) == ("test", 61)
    with pytest.raises(RunError, match=r"must have a split named train\. Received: splits test"):
        task.read_texts(words, str(tmp_path))


def test_corpora_are_read_without_splitting(tmp_path):
    text = write(tmp_path / "a.txt", LINES)
    assert {name: len(list(lines)) for name, lines in Corpus(text, split=False).splits.items()} == {
        "a.txt": 61
    }
    assert list(Corpus([text, text], split=False).splits) == ["a.txt + a.txt"]
    assert list(Corpus({"test": text}, split=False).test) == [line.encode() for line in LINES]
    with pytest.raises(ValueError, match=r"one or more of the keys .* Received: path=\{\}"):
        Corpus({}, split=False)
    tsv = write(tmp_path / "a.tsv", SPLITS["translation"][1])
    assert len(list(ParallelCorpus(tsv, split=False).splits["a.tsv"])) == 67
    assert list(ParallelCorpus({"test": tsv}, split=False).splits) == ["test"]
    dialogues = write(tmp_path / "test.txt", DIALOGUES)
    corpus = DialogCorpus(dialogues, drop_repeated=True, split=False)
    assert len(list(corpus.splits["test.txt"])) == 58
