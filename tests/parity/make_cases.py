"""Makes cases with tensorflow-addons: `python tests/parity/make_cases.py FOLDER SEED ...`.

Runs in an environment of its own (Python 3.11, TensorFlow 2.15.1, tensorflow-addons 0.23.0), which
`make test-parity` sets up, and knows nothing of keras_drill. Each seed makes an `attention_SEED`,
a `beam_SEED` and a `coverage_SEED` case for `tests.reference.replay`.
"""

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_addons as tfa


def attention_case(rng: np.random.Generator) -> dict:
    """Alignments of the four mechanisms, and sequence losses."""
    batch, steps, memory_dim, query_dim, units = (int(n) for n in rng.integers(2, 14, 5))
    steps += 1
    lengths = rng.integers(1, steps + 1, batch)
    memory = rng.normal(size=(batch, steps, memory_dim)).astype("float32")
    case = {
        "memory": memory,
        "query": rng.normal(size=(batch, query_dim)).astype("float32"),
        "luong_query": rng.normal(size=(batch, units)).astype("float32"),
        "lengths": lengths,
    }
    mechanisms = {
        "bahdanau": (tfa.seq2seq.BahdanauAttention, {}, "query"),
        "bahdanau_norm": (tfa.seq2seq.BahdanauAttention, {"normalize": True}, "query"),
        "luong": (tfa.seq2seq.LuongAttention, {}, "luong_query"),
        "luong_scaled": (tfa.seq2seq.LuongAttention, {"scale": True}, "luong_query"),
    }
    for name, (make, options, query) in mechanisms.items():
        mechanism = make(units, memory=memory, memory_sequence_length=lengths, **options)
        state = mechanism.initial_state(batch, tf.float32)
        mechanism([tf.constant(case[query]), state])  # builds its weights
        for weight in mechanism.weights:
            weight.assign(weight + 0.1 * rng.normal(size=weight.shape))
        mechanism.setup_memory(memory, memory_sequence_length=lengths)
        alignments, _ = mechanism([tf.constant(case[query]), state])
        case[f"{name}_alignments"] = alignments.numpy()
        for weight_name, weight in weights_of(mechanism).items():
            case[f"{name}_{weight_name}"] = weight.numpy()
    words, columns = (int(n) for n in rng.integers(2, 12, 2))
    case["loss_logits"] = rng.normal(size=(batch, columns, words)).astype("float32")
    case["loss_targets"] = rng.integers(0, words, (batch, columns))
    weights = (np.arange(columns) < rng.integers(1, columns + 1, (batch, 1))).astype("float32")
    case["loss_weights"] = weights
    arguments = case["loss_logits"], case["loss_targets"], weights
    case["sequence_loss"] = tfa.seq2seq.sequence_loss(*arguments).numpy()
    case["sequence_loss_per_batch"] = tfa.seq2seq.sequence_loss(
        *arguments, average_across_batch=False
    ).numpy()
    return case


def weights_of(mechanism) -> dict:
    """The weights of a mechanism by the names that a case has for them."""
    weights = {"memory_kernel": mechanism.memory_layer.kernel}
    if mechanism.query_layer is not None:
        weights["query_kernel"] = mechanism.query_layer.kernel
    letters = {"v": "attention_v", "g": "attention_g", "b": "attention_b"}
    if isinstance(mechanism, tfa.seq2seq.LuongAttention):
        letters = {"g": "scale_weight"}
    found = {letter: getattr(mechanism, name, None) for letter, name in letters.items()}
    return weights | {letter: weight for letter, weight in found.items() if weight is not None}


def beam_case(rng: np.random.Generator) -> dict:
    """A beam search with an LSTM of random weights."""
    batch, width, units = (int(n) for n in rng.integers(2, 9, 3))
    words = int(rng.integers(5, 40))
    case = {
        "kernel": rng.normal(size=(width, 4 * units)),
        "recurrent_kernel": rng.normal(size=(units, 4 * units)),
        "bias": rng.normal(size=4 * units),
        "output_kernel": 2 * rng.normal(size=(units, words)),
        "output_bias": rng.normal(size=words),
        "embeddings": rng.normal(size=(words, width)),
        "h0": rng.normal(size=(batch, units)),
        "c0": rng.normal(size=(batch, units)),
    }
    case = {name: array.astype("float32") for name, array in case.items()}
    case |= {
        "beam_width": int(rng.integers(2, 6)),
        "max_steps": int(rng.integers(5, 16)),
        "length_penalty_weight": float(rng.choice([0.0, 0.6, 1.0])),
        "start_token": 1,
        "end_token": 2,
    }
    cell = tf.keras.layers.LSTMCell(units)
    cell.build((None, width))
    cell.set_weights([case["kernel"], case["recurrent_kernel"], case["bias"]])
    output = tf.keras.layers.Dense(words)
    output.build((None, units))
    output.set_weights([case["output_kernel"], case["output_bias"]])
    decoder = tfa.seq2seq.BeamSearchDecoder(
        cell,
        case["beam_width"],
        output_layer=output,
        length_penalty_weight=case["length_penalty_weight"],
        maximum_iterations=case["max_steps"],
    )
    state = [tf.repeat(case[name], case["beam_width"], axis=0) for name in ("h0", "c0")]
    result, state, _ = decoder(
        tf.constant(case["embeddings"]),
        start_tokens=tf.fill([batch], case["start_token"]),
        end_token=case["end_token"],
        initial_state=state,
    )
    case["predicted_ids"] = result.predicted_ids.numpy()
    case["log_probs"] = state.log_probs.numpy()
    case["lengths"] = state.lengths.numpy()
    case["gate_order"] = "i,f,c,o"
    return case


def coverage_case(rng: np.random.Generator) -> dict:
    """A beam search with coverage penalty: an LSTM that looks at a memory and says what it saw."""
    batch, width, units, memory_dim, beams = (int(n) for n in rng.integers(2, 7, 5))
    steps, words = int(rng.integers(3, 11)), int(rng.integers(5, 40))
    case = {
        "kernel": rng.normal(size=(width + memory_dim, 4 * units)),
        "recurrent_kernel": rng.normal(size=(units, 4 * units)),
        "bias": rng.normal(size=4 * units),
        "output_kernel": 2 * rng.normal(size=(memory_dim, words)),
        "output_bias": rng.normal(size=words),
        "embeddings": rng.normal(size=(words, width)),
        "memory": rng.normal(size=(batch, steps, memory_dim)),
        "h0": rng.normal(size=(batch, units)),
        "c0": rng.normal(size=(batch, units)),
    }
    case = {name: array.astype("float32") for name, array in case.items()}
    case |= {
        # With one position every column is the same, and beams are equals.
        "lengths_of_memory": rng.integers(2, steps + 1, batch),
        "beam_width": beams,
        "max_steps": int(rng.integers(5, 16)),
        "length_penalty_weight": float(rng.choice([0.0, 0.6, 1.0])),
        "coverage_penalty_weight": float(rng.choice([0.1, 0.4, 1.5])),
        "start_token": 1,
        "end_token": 2,
    }
    mechanism = tfa.seq2seq.LuongAttention(
        units,
        memory=tf.repeat(case["memory"], beams, axis=0),
        memory_sequence_length=tf.repeat(case["lengths_of_memory"], beams),
    )
    cell = tf.keras.layers.LSTMCell(units)
    cell.build((None, width + memory_dim))
    cell.set_weights([case["kernel"], case["recurrent_kernel"], case["bias"]])
    output = tf.keras.layers.Dense(words)
    output.build((None, memory_dim))
    output.set_weights([case["output_kernel"], case["output_bias"]])
    wrapper = tfa.seq2seq.AttentionWrapper(cell, mechanism)
    state = wrapper.get_initial_state(batch_size=batch * beams, dtype=tf.float32)
    state = state.clone(cell_state=[tf.repeat(case[name], beams, axis=0) for name in ("h0", "c0")])
    decoder = tfa.seq2seq.BeamSearchDecoder(
        wrapper,
        beams,
        output_layer=output,
        length_penalty_weight=case["length_penalty_weight"],
        coverage_penalty_weight=case["coverage_penalty_weight"],
        maximum_iterations=case["max_steps"],
    )
    result, state, _ = decoder(
        tf.constant(case["embeddings"]),
        start_tokens=tf.fill([batch], case["start_token"]),
        end_token=case["end_token"],
        initial_state=state,
    )
    return case | {
        "memory_kernel": mechanism.memory_layer.kernel.numpy(),
        "predicted_ids": result.predicted_ids.numpy(),
        "log_probs": state.log_probs.numpy(),
        "lengths": state.lengths.numpy(),
    }


def main(folder: str, *seeds: str) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        rng = np.random.default_rng(int(seed))
        np.savez(Path(folder) / f"attention_{seed}.npz", **attention_case(rng))
        np.savez(Path(folder) / f"beam_{seed}.npz", **beam_case(rng))
        np.savez(Path(folder) / f"coverage_{seed}.npz", **coverage_case(rng))


if __name__ == "__main__":
    main(*sys.argv[1:])
