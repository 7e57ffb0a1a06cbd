import gzip

import numpy as np
import pytest

from keras_drill.data import read_word_vectors

LINES = "cat 1 0 0.5\nrain 0 -1e-2 0\n. . . 0.25 2 3\ncat 9 9 9\n\n"
EXPECTED = [[0, -0.01, 0], [0, 0, 0], [1, 0, 0.5], [0.25, 2, 3]]


@pytest.mark.parametrize("header", ["", "4 3\n", "4 3 \r\n"])
@pytest.mark.parametrize("opened", [open, gzip.open])
def test_vectors_are_found_by_word(header, opened, tmp_path):
    with opened(tmp_path / "vectors", "wb") as file:
        file.write((header + LINES).encode())
    vectors, known = read_word_vectors(tmp_path / "vectors", ["rain", "Cat", "cat", ". . ."])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, EXPECTED, rtol=1e-6)
    np.testing.assert_array_equal(known, [True, False, True, True])


def test_words_that_are_asked_for_twice_have_their_vector_twice(tmp_path):
    (tmp_path / "vectors").write_text("ö 1 2\n")
    vectors, known = read_word_vectors(tmp_path / "vectors", ["ö", "a", "ö"])
    np.testing.assert_array_equal(vectors, [[1, 2], [0, 0], [1, 2]])
    assert known.tolist() == [True, False, True]


@pytest.mark.parametrize(
    "text, message",
    [
        ("\n\n", "contain word vectors"),
        ("2 3\n", "contain word vectors"),
        ("cat 1 2 3\nrain 1 2\n", "and 3 numbers, as the first.*line 2, with 2 numbers"),
        ("cat 1 2 3\nrain 1 two 3\n", "finite numbers.*line 2, with the numbers 1 two 3"),
        ("cat 1 2 nan\n", "finite numbers.*line 1"),
        ("cat 1 2 1e39\n", "finite numbers.*line 1"),
        ("cat\n", "contain word vectors"),
    ],
)
def test_what_are_no_vectors_is_refused(text, message, tmp_path):
    (tmp_path / "vectors").write_text(text)
    with pytest.raises(ValueError, match=f"`path` .*{message}") as error:
        read_word_vectors(tmp_path / "vectors", ["cat", "rain"])
    assert "Received: " in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.vec"):
        read_word_vectors(tmp_path / "nothing.vec", ["cat"])
