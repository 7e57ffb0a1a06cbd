"""With a module that stands for tensorflow-datasets, and has of it what is used."""

import dataclasses
import sys
import types

import pytest
import tensorflow as tf

from keras_drill.data import EncodedText, ParallelCorpus, Vocabulary, WhitespaceTokenizer

PAIRS = {
    "train": [("ein Haus", "a house"), ("", "nothing"), ("zwei\r\n Zeilen\u2028", "two lines")],
    "validation": [("drei", "three")],
    "test": [("vier", "four")],
}


@dataclasses.dataclass
class Builder:
    """Prepared only when it was asked for, as the library's builders are."""

    name: str
    version: str = "1.0.0"
    splits: tuple = ("train", "validation", "test")
    keys: tuple | None = ("de", "en")
    prepared: bool = False

    @property
    def info(self):
        described = {
            name: types.SimpleNamespace(shard_lengths=[len(PAIRS[name])], num_bytes=1000)
            for name in self.splits
        }
        return types.SimpleNamespace(
            full_name=f"{self.name}/{self.version}",
            features={"de": None, "en": None, "id": None},
            supervised_keys=self.keys,
            splits=described if self.prepared else {},
        )

    def download_and_prepare(self):
        self.prepared = True

    def as_dataset(self, split, read_config, shuffle_files):
        assert self.prepared and not shuffle_files and read_config.interleave_cycle_length == 1
        de, en = zip(*PAIRS[split], strict=True)
        return tf.data.Dataset.from_tensor_slices({"de": list(de), "en": list(en)})


@pytest.fixture
def builders(monkeypatch):
    """The builders by name, to be changed before they are asked for."""
    known = {"wmt14_translate/de-en": Builder("wmt14_translate/de-en")}
    module = types.ModuleType("tensorflow_datasets")
    module.builder = known.__getitem__
    module.ReadConfig = types.SimpleNamespace
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", module)
    return known


def test_pairs_by_split(builders):
    corpus = ParallelCorpus("tfds:wmt14_translate/de-en")
    found = {name: list(text) for name, text in corpus.splits.items()}
    assert list(found) == ["train", "valid", "test"]
    assert found["train"] == [
        (b"ein Haus", b"a house"),
        (b"", b"nothing"),
        ("zwei Zeilen\u2028".encode(), b"two lines"),
    ]
    assert found["valid"] == [(b"drei", b"three")] and found["test"] == [(b"vier", b"four")]
    backwards = ParallelCorpus("tfds:wmt14_translate/de-en", source="en", target="de")
    assert list(backwards.splits["test"]) == [(b"four", b"vier")]


def test_a_training_split_alone_is_cut(builders, monkeypatch):
    builders["para_crawl/ende"] = Builder("para_crawl/ende", splits=("train",))
    pairs = [(f"Satz {number}", f"sentence {number}") for number in range(301)]
    monkeypatch.setitem(PAIRS, "train", pairs)
    splits = ParallelCorpus("tfds:para_crawl/ende").splits
    assert all(len(list(text)) > 5 for text in splits.values())
    found = sorted(pair for text in splits.values() for pair in text)
    assert found == sorted((s.encode(), t.encode()) for s, t in pairs)


def test_lines_are_encoded_and_told_apart(builders, tmp_path):
    corpus = ParallelCorpus("tfds:wmt14_translate/de-en")
    sides = [side for text in corpus.splits.values() for side in (text.source, text.target)]
    assert len({side.fingerprint() for side in sides}) == 6
    before = sides[0].fingerprint()
    builders["wmt14_translate/de-en"].version = "2.0.0"
    assert sides[0].fingerprint() != before
    tokenizer = WhitespaceTokenizer()
    vocabulary = Vocabulary.build(sides[0], tokenizer)
    text = EncodedText.encode(sides[0], tokenizer, vocabulary, cache=tmp_path)
    assert text.line_lengths.tolist() == [3, 1, 3]


def test_errors(builders, monkeypatch):
    name = "tfds:wmt14_translate/de-en"
    with pytest.raises(ValueError, match=r"two different features .*\['de', 'en', 'id'\].*'fr'"):
        ParallelCorpus(name, source="fr", target="en")
    with pytest.raises(ValueError, match="Received: source='de', target=None"):
        ParallelCorpus(name, source="de")
    builders["wmt14_translate/de-en"].keys = None
    with pytest.raises(ValueError, match="Received: source=None, target=None"):
        ParallelCorpus(name)
    builders["tests"] = Builder("tests", splits=("test",))
    with pytest.raises(ValueError, match=r"must have a split 'train'. Received: splits \['test'\]"):
        ParallelCorpus("tfds:tests")
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(ImportError, match="pip install tensorflow-datasets"):
        ParallelCorpus(name)
