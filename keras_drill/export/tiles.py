"""Processes tokens in groups (tiles), to limit the memory for the logits of all words."""

import tensorflow as tf

_TILE_BYTES = 2**26


def in_tiles(head, function, hidden, ids):
    """Applies a function to tokens, one group of tokens (a tile) at a time, to save memory.

    `OutputLayer.log_prob` also uses tiles, but with `XlaDynamicUpdateSlice`, which TensorFlow
    Serving runs on a CPU only with `--xla_cpu_compilation_enabled`, and on a GPU not at all.

    Args:
        head: The output layer. Its number of logits per token determines the size of a tile.
        function: Function from hidden states `[n, d]` and words `[n]` to float32 `[n, ...]`.
        hidden: `[B, T, d]`.
        ids: `[B, T]`.

    Returns:
        `[B, T, ...]`.
    """
    scores = head.composition.num_labels(head.vocabulary_size) * head.composition.num_contexts
    count = tf.size(ids)
    tile = tf.clip_by_value(count, 1, max(1, _TILE_BYTES // (4 * scores)))
    tiles = tf.maximum(1, -(-count // tile))  # the result of an empty loop has no known shape

    def cut(x):
        x = tf.pad(x, [[0, tiles * tile - count]] + [[0, 0]] * (x.shape.rank - 1))
        return tf.reshape(x, tf.concat([[tiles, tile], tf.shape(x)[1:]], axis=0))

    results = tf.map_fn(
        lambda pair: function(*pair),
        (cut(tf.reshape(hidden, [-1, hidden.shape[-1]])), cut(tf.reshape(ids, [-1]))),
        fn_output_signature=tf.float32,
    )  # [tiles, tile, ...]
    flat = tf.reshape(results, [-1, *results.shape[2:]])[:count]
    return tf.reshape(flat, tf.concat([tf.shape(ids), results.shape[2:]], axis=0))
