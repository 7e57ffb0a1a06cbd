"""Sizes of the fused loss's tiles and blocks: tokens per tile and labels per block, by device.

On a CPU, a tile is small and is computed for one block of labels after another, to save memory. On
a GPU or TPU, every product is over all labels, and a tile has as many tokens as the memory limit
allows: smaller products do not use the whole device, and each one costs a launch and a pass over
the gradient of the labels.
"""

import math

from keras_drill.ops.device_kind import is_accelerator

# Memory of a tile of scores. On CPUs this is the minimum.
CPU_TILE_BYTES = 144 * 2**20
ACCELERATOR_TILE_BYTES = 2 * 2**30
# Memory of the intermediate results of a block of labels on a CPU.
LABEL_BLOCK_BYTES = 32 * 2**20
# Least rows of a tile that keeps no scores: matrix products of more rows are not faster on CPUs.
ROWS_WITHOUT_SCORES = 1024
# On accelerators, rows of tiles are a multiple of this number, for their matrix units.
_ROW_MULTIPLE = 128


def default_tile_bytes(gradient_bytes: int, least: int = CPU_TILE_BYTES) -> int:
    """Returns the default memory of a tile of logits, in bytes.

    On a CPU the result is three eighths of the size of the labels' gradient, and at least `least`.

    Args:
        gradient_bytes: Size of the labels' gradient; 0 if there is none.
        least: The smallest result on a CPU.
    """
    if is_accelerator():
        return ACCELERATOR_TILE_BYTES
    return max(least, 3 * gradient_bytes // 8)


def bytes_per_score(compute_dtype: str) -> int:
    """Returns memory of a tile for each of its scores."""
    if not is_accelerator():
        return 4
    # The product, and the intermediate result that is kept for the gradients.
    return 2 * (8 if compute_dtype == "float64" else 4 if compute_dtype == "float32" else 2)


def labels_per_block(num_labels: int, width: int, multiple: int) -> int:
    """Returns number of labels in a block.

    Args:
        num_labels: M.
        width: Number of floats that are computed for each label.
        multiple: The result is a multiple of this number.
    """
    if is_accelerator():
        return num_labels
    count = max(1, math.ceil(4 * num_labels * width / LABEL_BLOCK_BYTES))
    return math.ceil(num_labels / count / multiple) * multiple


def rows_without_scores(rows: int) -> int:
    """Returns the rows of a tile that keeps no scores, if tiles with scores have `rows`."""
    return rows if is_accelerator() else max(rows, ROWS_WITHOUT_SCORES)


def padded_tokens(size: int) -> int:
    """Returns the number of tokens in a tile for `size` tokens; accelerators pad tiles."""
    if not is_accelerator() or size <= _ROW_MULTIPLE:
        return size
    return math.ceil(size / _ROW_MULTIPLE) * _ROW_MULTIPLE
