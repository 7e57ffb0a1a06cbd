"""A stack of recurrent layers whose input depends on the stack's own last output.

T time steps, B sequences, S senses, d width of the senses, L layers. Everything is time-major.
"""

import itertools

import keras
from keras import ops

from keras_drill.layers.time_loop import outer_rows, previous_steps, scan_steps


def sense_recurrence(embedding, layers, looked_up, weights, kept, kept_words, mask, state):
    """Runs a stack of layers over words that are embedded by the posterior of their senses.

        x_t = Σ_j P(sense j of word t | h_{t-1}) w_j          h: the last layer's output
        h_t, ... = layers(x_t, state)

    One loop over time for all layers, and a hand-written derivative: as in `lstm_sequence`, the
    backward loop only propagates the derivative δ_t for the gates, and the weights' gradients are
    one product each over all T·B rows afterwards.

    Args:
        embedding: A `keras_drill.SenseEmbedding`.
        layers: `keras_drill.layers.LSTM`s or `GRU`s.
        looked_up: What `embedding.look_up` gave for the words `[T, B]`.
        weights: What `read_weights` gave for each layer.
        kept: Dropout masks: of the input `[B, d]`, then of each layer's output. No derivative.
        kept_words: Factors of the words' embeddings, `[T, B, 1]`. No derivative.
        mask: `None`, or `[T, B]`; the state is carried through masked steps.
        state: The flat list of states `[B, H]` before the first step.

    Returns:
        The flat list of states after every step, `[T, B, H]` each.
    """
    senses, sense_mask, _, *parameters = looked_up
    dtype = keras.backend.standardize_dtype(senses.dtype)
    state_dtype = keras.backend.standardize_dtype(state[0].dtype)
    num_states, num_parameters = layers[0].num_states, len(parameters)
    count = num_states * len(layers)
    last = count - num_states  # where the last layer's output is in a flat list of states
    masks = () if mask is None else (ops.expand_dims(mask, -1),)  # [T, B, 1]

    def select(mask, if_true, if_false):
        return [
            ops.where(mask[0], a, b) if mask else a for a, b in zip(if_true, if_false, strict=True)
        ]

    def of_layer(flat, index):
        return list(flat[index * num_states : (index + 1) * num_states])

    def layer_inputs(x, outputs):
        """What each layer reads: `x` and the outputs of the layers below, both after dropout."""
        below = [x, *(outputs[i * num_states] for i in range(len(layers) - 1))]
        return [ops.cast(y * m, dtype) for y, m in zip(below, kept[:-1], strict=True)]

    def embed(output, senses, sense_mask, parameters, kept_words):
        context = ops.cast(output * kept[-1], dtype)
        x = embedding.weigh(senses, sense_mask, None, *parameters, context=context)
        return ops.cast(x, state_dtype) * kept_words

    def forward(senses, parameters, weights, state):
        def step(carry, inputs):
            state = list(carry[:count])
            senses, sense_mask, kept_words, *rest = inputs
            parameters, mask = rest[:num_parameters], rest[num_parameters:]
            x = embed(state[last], senses, sense_mask, parameters, kept_words)
            new_state, all_gates = [], []
            for i, layer in enumerate(layers):
                old = of_layer(state, i)
                x = ops.cast(x * kept[i], dtype)
                new, gates = layer.run_step(x, *weights[i], old)
                new_state += select(mask, new, old)
                all_gates.append(ops.cast(gates, dtype))
                x = new_state[i * num_states]
            carry = (*new_state, *all_gates)
            return carry, carry

        gates = [ops.zeros((ops.shape(s)[0], 4 * s.shape[-1]), dtype) for s in state[::num_states]]
        inputs = (senses, sense_mask, kept_words, *parameters, *masks)
        return scan_steps(step, (*state, *gates), inputs)[1]

    @ops.custom_gradient
    def run(*flat):
        flat = list(flat)
        senses, parameters = flat[0], flat[1 : 1 + num_parameters]
        state, arrays = flat[1 + num_parameters :][:count], flat[1 + num_parameters + count :]
        weights = [arrays[3 * i : 3 * i + 3] for i in range(len(layers))]
        results = forward(senses, parameters, weights, state)
        states, gates = list(results[:count]), list(results[count:])
        before = [previous_steps(s, after) for s, after in zip(state, states, strict=True)]

        def gradient(*upstream):
            upstream = keras.tree.flatten(upstream)  # TensorFlow passes arguments, JAX one tuple
            kernels = [[ops.transpose(w) for w in arrays[:2]] for arrays in weights]

            def step(carry, inputs):
                inputs = iter(inputs)
                d_outputs, new, old = (list(itertools.islice(inputs, count)) for _ in range(3))
                gates = list(itertools.islice(inputs, len(layers)))
                senses, sense_mask, kept_words = itertools.islice(inputs, 3)
                parameters, mask = list(itertools.islice(inputs, num_parameters)), list(inputs)
                d_state = [a + b for a, b in zip(carry[:count], d_outputs, strict=True)]
                d_previous, deltas = [None] * count, [None] * len(layers)
                for i in reversed(range(len(layers))):
                    layer = layers[i]
                    d_new = of_layer(d_state, i)
                    delta, direct = layer.step_gradient(
                        ops.cast(gates[i], state_dtype), of_layer(new, i), of_layer(old, i), d_new
                    )
                    (delta,) = select(mask, [delta], [ops.zeros_like(delta)])
                    deltas[i] = ops.cast(delta, dtype)
                    x_delta, h_delta = layer.gate_shares(deltas[i])
                    direct = select(mask, direct, d_new)
                    direct[0] = direct[0] + ops.cast(
                        ops.matmul(h_delta, kernels[i][1]), state_dtype
                    )
                    d_previous[i * num_states : (i + 1) * num_states] = direct
                    d_x = ops.cast(ops.matmul(x_delta, kernels[i][0]), state_dtype) * kept[i]
                    if i:
                        d_state[(i - 1) * num_states] = d_state[(i - 1) * num_states] + d_x
                context = ops.cast(old[last] * kept[-1], dtype)
                d_context, d_senses, d_parameters = embedding.weigh_gradient(
                    d_x * kept_words, senses, sense_mask, parameters, context
                )
                d_previous[last] = d_previous[last] + ops.cast(d_context, state_dtype) * kept[-1]
                carry = (*d_previous, *deltas, ops.cast(d_senses, dtype), *d_parameters)
                return carry, carry

            start = (
                *[ops.zeros_like(s) for s in state],
                *[ops.zeros_like(g[0]) for g in gates],
                ops.zeros_like(senses[0]),
                *[ops.zeros_like(p[0]) for p in parameters],
            )
            inputs = (*upstream, *states, *before, *gates, senses, sense_mask, kept_words)
            d_first, sequences = scan_steps(
                step, start, (*inputs, *parameters, *masks), reverse=True
            )
            deltas = sequences[count : count + len(layers)]
            x = embed(before[last], senses, sense_mask, parameters, kept_words)
            d_weights = []
            for i, (layer, y) in enumerate(zip(layers, layer_inputs(x, states), strict=True)):
                x_delta, h_delta = layer.gate_shares(deltas[i])
                previous_h = ops.cast(before[i * num_states], dtype)
                d_weights += [
                    outer_rows(y, x_delta),
                    outer_rows(previous_h, h_delta),
                    layer.bias_gradient(x_delta, h_delta),
                ]
            return (*sequences[count + len(layers) :], *d_first[:count], *d_weights)

        return tuple(states), gradient

    flat_weights = [w for arrays in weights for w in arrays]
    return keras.tree.flatten(run(senses, *parameters, *state, *flat_weights))
