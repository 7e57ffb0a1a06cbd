import numpy as np
import pytest

from keras_drill.workbench.analysis import numerical_rank, singular_values


def _matrix(spectrum, rows=331, columns=173, seed=3):
    """A matrix with given singular values."""
    generator = np.random.default_rng(seed)
    left, _ = np.linalg.qr(generator.normal(size=(rows, len(spectrum))))
    right, _ = np.linalg.qr(generator.normal(size=(columns, len(spectrum))))
    return left * spectrum @ right.T


def _blocks(matrix, size):
    return (matrix[start : start + size] for start in range(0, len(matrix), size))


@pytest.mark.parametrize("size", [1, 53, 173, 331])
def test_blocks_of_any_size_give_the_values_of_the_whole(size):
    spectrum = np.geomspace(7, 7e-9, 61)  # a Gram matrix in float64 would lose the last of these
    values = singular_values(_blocks(_matrix(spectrum), size))
    np.testing.assert_allclose(values[:61], spectrum, rtol=1e-5)
    assert values.shape == (173,) and values[61:].max() < 1e-14


@pytest.mark.parametrize("rank", [1, 2, 61, 172, 173])
@pytest.mark.parametrize("smallest", [1.0, 1e-6, 1e-9])
def test_known_ranks_are_found(rank, smallest):
    matrix = _matrix(np.geomspace(1, smallest, rank) if rank > 1 else np.ones(1))
    assert numerical_rank(singular_values(_blocks(matrix, 67))) == rank
    assert numerical_rank(singular_values(_blocks(matrix.T, 67))) == rank


@pytest.mark.parametrize("rank", [1, 2, 61, 83])
def test_a_projection_keeps_the_rank(rank):
    spectrum = np.geomspace(1, 1e-6, rank) if rank > 1 else np.ones(1)
    values = singular_values(_blocks(_matrix(spectrum), 67), max_columns=89)
    assert values.shape == (89,) and numerical_rank(values) == rank


def test_a_projection_keeps_singular_values_roughly_and_is_repeatable():
    matrix = _matrix(np.geomspace(1, 1e-3, 11), rows=101, columns=1009)
    projected = singular_values([matrix], max_columns=503, seed=7)
    ratio = projected[:11] / np.geomspace(1, 1e-3, 11)
    spread = (11 / 503) ** 0.5
    assert 1 - 2 * spread < ratio.min() and ratio.max() < 1 + 2 * spread
    np.testing.assert_array_equal(projected, singular_values([matrix], max_columns=503, seed=7))
    assert not np.array_equal(projected, singular_values([matrix], max_columns=503, seed=8))


def test_a_projection_finds_at_most_its_columns():
    values = singular_values([_matrix(np.ones(101))], max_columns=31)
    assert numerical_rank(values) == len(values) == 31


def test_coherent_matrices_keep_their_rank():
    assert numerical_rank(singular_values([np.eye(97, 211)], max_columns=113)) == 97


def test_noise_below_the_tolerance_does_not_count():
    matrix = _matrix(np.ones(17)) + 1e-15 * np.random.default_rng(0).normal(size=(331, 173))
    values = singular_values([matrix])
    assert numerical_rank(values) == 17
    assert numerical_rank(values, tolerance=1e-16) == 173


@pytest.mark.parametrize(
    "blocks, message",
    [
        ([], "must have at least one block"),
        ([np.ones(3)], "must be matrices"),
        ([np.array([[1.0, np.nan]])], "must be finite"),
    ],
)
def test_wrong_blocks_are_refused(blocks, message):
    with pytest.raises(ValueError, match=rf"`blocks` {message}.* Received: "):
        singular_values(blocks)


def test_wrong_options_are_refused():
    with pytest.raises(ValueError, match=r"`max_columns` .* Received: max_columns=0"):
        singular_values([np.eye(2)], max_columns=0)
    for tolerance in (0, 1, -1.0):
        with pytest.raises(ValueError, match=r"`tolerance` .* Received: "):
            numerical_rank(np.ones(2), tolerance)
    with pytest.raises(ValueError, match=r"`values` .* Received: "):
        numerical_rank(np.ones((2, 2)))
