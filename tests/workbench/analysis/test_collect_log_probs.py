import keras
import numpy as np
import pytest

import keras_drill
from keras_drill.workbench.analysis import collect_log_probs


def _recurrent_model(stateful):
    keras.utils.set_random_seed(3)
    backbone = keras_drill.models.GRULanguageBackbone(
        vocabulary_size=23, embedding_dim=7, units=11, num_layers=2, stateful=stateful, batch_size=3
    )
    head = keras_drill.OutputLayer(23, embedding=backbone.embedding)
    return keras_drill.LanguageModel(backbone, head)


def _batches(lengths, seed=5):
    generator = np.random.default_rng(seed)
    return [
        tuple(generator.integers(23, size=(2, 3, length)).astype("int32")) for length in lengths
    ]


def _expected(model, tokens, targets):
    log_probs = keras.ops.convert_to_numpy(model(tokens))
    return np.take_along_axis(log_probs, targets[..., None], -1)[..., 0]


def test_agrees_with_the_matrix_of_all_words():
    model = _recurrent_model(stateful=False)
    batches = _batches([5, 7, 5])
    targets, log_probs = collect_log_probs(model, batches)
    expected = np.concatenate([_expected(model, *batch).ravel() for batch in batches])
    np.testing.assert_array_equal(targets, np.concatenate([y.ravel() for _, y in batches]))
    np.testing.assert_allclose(log_probs, expected, rtol=1e-5)
    assert (targets.dtype, log_probs.dtype) == ("int32", "float32")


@pytest.mark.slow
def test_stateful_backbone_reads_on_from_zero_and_gets_its_state_back():
    model = _recurrent_model(stateful=True)
    batches = _batches([5, 2, 7])
    model(batches[0][0])  # leaves a state behind
    before = [state.numpy() for state in model.backbone.state_variables]
    assert any(state.any() for state in before)

    _, log_probs = collect_log_probs(model, batches)

    after = [state.numpy() for state in model.backbone.state_variables]
    for left, right in zip(before, after, strict=True):
        np.testing.assert_array_equal(left, right)
    # The three batches are one text for a model that carries its state.
    unbroken = _recurrent_model(stateful=False)
    unbroken(batches[0][0])
    unbroken.backbone.embedding.set_weights(model.backbone.embedding.get_weights())
    for own, other in zip(model.trainable_variables, unbroken.trainable_variables, strict=True):
        other.assign(own)
    tokens, targets = (np.concatenate(parts, axis=1) for parts in zip(*batches, strict=True))
    expected = np.split(_expected(unbroken, tokens, targets), [5, 7], axis=1)
    np.testing.assert_allclose(
        log_probs, np.concatenate([part.ravel() for part in expected]), rtol=1e-4, atol=1e-5
    )


def test_padding_is_left_out():
    model = _recurrent_model(stateful=False)
    tokens, targets = _batches([5])[0]
    weight = np.array([[1, 1, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]], "float32")
    kept_targets, log_probs = collect_log_probs(model, [(tokens, targets, weight)])
    np.testing.assert_array_equal(kept_targets, targets[weight > 0])
    np.testing.assert_allclose(log_probs, _expected(model, tokens, targets)[weight > 0], rtol=1e-5)


@pytest.mark.slow
def test_takes_a_tf_data_dataset():
    tf = pytest.importorskip("tensorflow")
    model = _recurrent_model(stateful=False)
    tokens, targets = _batches([5])[0]
    dataset = tf.data.Dataset.from_tensor_slices((tokens, targets)).batch(2)  # last one is smaller
    np.testing.assert_allclose(
        collect_log_probs(model, dataset)[1],
        collect_log_probs(model, [(tokens, targets)])[1],
        rtol=1e-5,
    )


def test_any_keras_model_is_a_backbone():
    embedding = keras.layers.Embedding(23, 7)
    model = keras_drill.LanguageModel(
        keras.Sequential([embedding, keras.layers.Dense(7)]),
        keras_drill.OutputLayer(23, embedding=embedding),
    )
    batches = _batches([5])
    _, log_probs = collect_log_probs(model, batches)
    np.testing.assert_allclose(log_probs, _expected(model, *batches[0]).ravel(), rtol=1e-5)


def test_an_empty_dataset_is_an_error():
    with pytest.raises(ValueError, match=r"`dataset` must have at least one batch\. Received: "):
        collect_log_probs(_recurrent_model(stateful=False), [])
