"""How the fused loss cuts its work: tokens per tile and labels per block, by the kind of device.

On a CPU a tile is small, and everything that is made of it is made for one block of labels after
another, so that little is in memory at once. On a GPU or TPU every product is over all labels, and
a tile has as many tokens as the budget holds: smaller products do not fill the device, and each
one costs a launch and a pass over the labels' gradient.
"""

import math

from keras_drill.ops.device_kind import is_accelerator

# Memory of a tile of scores, at the least on CPUs.
CPU_TILE_BYTES = 144 * 2**20
ACCELERATOR_TILE_BYTES = 2 * 2**30
# On a CPU what is made of a tile is made for blocks of labels that take about this much.
LABEL_BLOCK_BYTES = 32 * 2**20
# Rows of a tile that keeps no scores, at the least: matrix products of more are no faster on CPUs.
ROWS_WITHOUT_SCORES = 1024
# Rows of tiles on accelerators are a multiple of it, for the tiles of their matrix units.
_ROW_MULTIPLE = 128


def default_tile_bytes(gradient_bytes: int, least: int = CPU_TILE_BYTES) -> int:
    """Memory of a tile of scores where the user gives none.

    Args:
        gradient_bytes: Size of the labels' gradient, 0 if they get none.
        least: Fewest bytes on a CPU.
    """
    if is_accelerator():
        return ACCELERATOR_TILE_BYTES
    return max(least, 3 * gradient_bytes // 8)


def bytes_per_score(compute_dtype: str) -> int:
    """Memory that a tile takes for each of its scores."""
    if not is_accelerator():
        return 4
    # The product, and what is kept of it for the gradients.
    return 2 * (8 if compute_dtype == "float64" else 4 if compute_dtype == "float32" else 2)


def labels_per_block(num_labels: int, width: int, multiple: int) -> int:
    """Number of labels that are worked on at a time.

    Args:
        num_labels: M.
        width: How many floats are made for each label.
        multiple: The number is a multiple of this one, but for the last block.
    """
    if is_accelerator():
        return num_labels
    count = max(1, math.ceil(4 * num_labels * width / LABEL_BLOCK_BYTES))
    return math.ceil(num_labels / count / multiple) * multiple


def rows_without_scores(rows: int) -> int:
    """Rows of a tile that keeps no scores, where one that keeps them has `rows`."""
    return rows if is_accelerator() else max(rows, ROWS_WITHOUT_SCORES)


def padded_tokens(size: int) -> int:
    """Returns the number of tokens of a tile that holds at least `size`, which accelerators pad."""
    if not is_accelerator() or size <= _ROW_MULTIPLE:
        return size
    return math.ceil(size / _ROW_MULTIPLE) * _ROW_MULTIPLE
