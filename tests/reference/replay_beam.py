import keras
import numpy as np
from keras import ops

from keras_drill.decoding import AddonsBeamSearch, DecodingStep


class LSTMStep(DecodingStep):
    """The LSTM, embeddings and output of a case."""

    def __init__(self, case: dict, dtype: str):
        super().__init__(len(case["output_bias"]))
        arrays = {name: array for name, array in case.items() if array.dtype.kind == "f"}
        self.arrays = {name: ops.convert_to_tensor(x, dtype) for name, x in arrays.items()}
        self.cell = keras.layers.LSTMCell(case["h0"].shape[1], dtype=dtype)
        self.cell.build((None, len(case["kernel"])))
        self.cell.set_weights([case["kernel"], case["recurrent_kernel"], case["bias"]])

    def begin(self, inputs, batch_size, length):
        return (), [self.arrays["h0"], self.arrays["c0"]]

    def read(self, tokens, constants, state):
        return self.cell(ops.take(self.arrays["embeddings"], tokens, axis=0), state)

    def log_probs(self, hidden):
        logits = ops.matmul(hidden, self.arrays["output_kernel"]) + self.arrays["output_bias"]
        return ops.cast(ops.log_softmax(logits), "float32")


class AttendingStep(LSTMStep):
    """The LSTM of a coverage case, which looks at its memory by general attention."""

    def begin(self, inputs, batch_size, length):
        memory = self.arrays["memory"]
        mask = np.arange(memory.shape[1]) < inputs[:, None]
        keys = ops.matmul(memory, self.arrays["memory_kernel"])
        state = [self.arrays["h0"], self.arrays["c0"], ops.zeros_like(memory[:, 0])]
        return (memory, keys, ops.convert_to_tensor(mask)), state

    def source_mask(self, constants):
        return constants[2]

    def read(self, tokens, constants, state):
        return self.read_with_attention(tokens, constants, state)[:2]

    def read_with_attention(self, tokens, constants, state):
        memory, keys, mask = constants
        h, c, context = state
        words = ops.take(self.arrays["embeddings"], tokens, axis=0)
        h, state = self.cell(ops.concatenate([words, context], axis=-1), [h, c])
        query = ops.reshape(h, (len(memory), -1, h.shape[-1]))
        scores = ops.einsum("bku,bsu->bks", query, keys)
        weights = ops.softmax(ops.where(mask[:, None], scores, -1e30))
        context = ops.reshape(ops.matmul(weights, memory), (-1, memory.shape[-1]))
        return context, [*state, context], ops.reshape(weights, (-1, weights.shape[-1]))


def replay_beam(case: dict, dtype: str) -> dict:
    """The beams of an `AddonsBeamSearch`, in the form of tensorflow-addons."""
    steps = case["predicted_ids"].shape[1]
    end = int(case["end_token"])
    search = AddonsBeamSearch(
        int(case["beam_width"]),
        float(case["length_penalty_weight"]),
        coverage_penalty=float(case.get("coverage_penalty_weight", 0.0)),
    )
    step = AttendingStep(case, dtype) if "memory" in case else LSTMStep(case, dtype)
    tokens = np.full((len(case["h0"]), 1 + int(case["max_steps"])), end)
    tokens[:, 0] = int(case["start_token"])
    beams = search(
        step,
        tokens,
        np.ones(len(tokens)),
        inputs=case.get("lengths_of_memory"),
        end_token=end,
        pad_token=end,
    )
    written = ops.convert_to_numpy(beams.tokens)[:, :, 1:]  # [B, K, max_steps]
    lengths = ops.convert_to_numpy(beams.lengths) - 1
    # Sorted: BeamSearchDecoder gives ids in the order that beams had when the last of them ended,
    # but log-probabilities and lengths in the order they have at the end, which may be another.
    return {
        "predicted_ids": (
            sorted_beams(written[:, :, :steps]),
            sorted_beams(case["predicted_ids"].transpose(0, 2, 1)),
        ),
        "log_probs": (beams.log_probs, case["log_probs"]),
        "lengths": (lengths, case["lengths"]),
    }


def sorted_beams(ids: np.ndarray) -> np.ndarray:
    """Ids `[B, K, T]` with the K beams of each sequence in lexicographic order."""
    return np.array([sorted(beams.tolist()) for beams in ids])
