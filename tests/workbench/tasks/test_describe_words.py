import numpy as np
import pytest

from keras_drill.workbench.tasks.describe_words import (
    DESCRIPTIONS,
    describe_words,
    load_descriptions,
    save_descriptions,
)
from keras_drill.workbench.tasks.errors import ConfigError, RunError
from tests.workbench.sense_induction.tiny_encoder import WIDTH, save_preset

WORDS = ["<unk>", "the", "water", "loan", "bank"]


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    return save_preset(tmp_path_factory.mktemp("encoder"))


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "words.vec"
    path.write_text("water 1 2 6\nloan 4 4 4\nsea 3 1 4\n")
    return path


def test_vectors_of_a_file(vectors, capsys):
    described = describe_words(str(vectors), WORDS)
    assert "vectors for 2 of the 5 words" in capsys.readouterr().out
    expected = np.zeros((5, 3))
    expected[2] = (np.array([1, 2, 6]) - 3) / np.std([1, 2, 6])
    np.testing.assert_allclose(described, expected, rtol=1e-5)  # a constant vector tells nothing


def test_vectors_of_an_encoder_depend_on_the_word_alone(preset):
    described = describe_words(f"encoder:{preset}", WORDS)
    assert described.shape == (5, WIDTH) and described.dtype == np.float32
    np.testing.assert_allclose(described.mean(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(described.std(axis=1), 1, rtol=1e-5)
    assert np.abs(described[2] - described[3]).max() > 0.1
    some = describe_words(f"encoder:{preset}", ["loan", "cash"])
    np.testing.assert_allclose(some[0], described[3], atol=1e-5)


@pytest.mark.parametrize(
    "source, message",
    [
        ("nothing.vec", "head.descriptions nothing.vec: No such text file"),
        ("encoder:{folder}", "head.descriptions encoder:.*config.json"),
        ("{folder}/damaged.vec", "damaged.vec: .*finite numbers"),
        ("{folder}/others.vec", "others.vec, which has none of these words"),
        ("{folder}", "head.descriptions .*Expected a text file, found a folder"),
    ],
)
def test_what_describes_no_words_is_refused(source, message, tmp_path):
    (tmp_path / "damaged.vec").write_text("water one two\n")
    (tmp_path / "others.vec").write_text("sea 3 1 4\n")
    with pytest.raises(RunError, match=message):
        describe_words(source.format(folder=tmp_path), WORDS)


@pytest.mark.parametrize("source", ["", "encoder:"])
def test_a_source_must_be_named(source):
    with pytest.raises(ConfigError, match=r"head.descriptions must be .* Received: "):
        describe_words(source, WORDS)


def test_descriptions_are_kept(tmp_path):
    save_descriptions(tmp_path, None)
    assert load_descriptions(tmp_path, WORDS) is None
    described = np.arange(15, dtype="float32").reshape(5, 3)
    save_descriptions(tmp_path, described)
    np.testing.assert_array_equal(load_descriptions(tmp_path, WORDS), described)
    with pytest.raises(RunError, match="must have one row for each of the 2 words"):
        load_descriptions(tmp_path, WORDS[:2])


@pytest.mark.parametrize("content", [b"", b"nothing", b"\x93NUMPY\x01\x00"])
def test_damaged_descriptions_are_named(content, tmp_path):
    (tmp_path / DESCRIPTIONS).write_bytes(content)
    with pytest.raises(
        RunError, match=r"is damaged .*; remove the file, and training computes it again"
    ):
        load_descriptions(tmp_path, WORDS)
