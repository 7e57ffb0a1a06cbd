import keras
import numpy as np
import pytest

import keras_drill
from keras_drill.workbench.analysis import collect_hidden


def _model(stateful=True):
    keras.utils.set_random_seed(3)
    backbone = keras_drill.models.GRULanguageBackbone(
        vocabulary_size=23, embedding_dim=7, units=11, num_layers=2, stateful=stateful, batch_size=3
    )
    model = keras_drill.LanguageModel(
        backbone, keras_drill.OutputLayer(23, embedding=backbone.embedding)
    )
    model.build((3, 5))
    return model


def _batches(lengths):
    generator = np.random.default_rng(5)
    return [
        tuple(generator.integers(23, size=(2, 3, length)).astype("int32")) for length in lengths
    ]


def test_states_follow_one_another_from_zero_and_the_old_ones_come_back():
    model = _model()
    batches = _batches([5, 2, 7])
    model.backbone(batches[0][0])
    before = [keras.ops.convert_to_numpy(v) for v in model.backbone.state_variables]
    assert any(state.any() for state in before)

    places, targets, hidden = collect_hidden(model, batches)

    for value, variable in zip(before, model.backbone.state_variables, strict=True):
        np.testing.assert_array_equal(value, keras.ops.convert_to_numpy(variable))
    np.testing.assert_array_equal(places, np.arange(3 * 14))
    np.testing.assert_array_equal(targets, np.concatenate([y.ravel() for _, y in batches]))
    model.backbone.reset_state()
    expected = [keras.ops.convert_to_numpy(model.backbone(x)).reshape(-1, 7) for x, _ in batches]
    np.testing.assert_allclose(hidden, np.concatenate(expected), rtol=1e-4, atol=1e-6)


def test_chosen_words_keep_their_places():
    model = _model()
    weight = np.array([[1, 1, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 1]], "float32")
    batches = [(*batch, weight) for batch in _batches([5, 5])]
    places, targets, hidden = collect_hidden(model, batches)
    assert len(places) == 2 * weight.sum()
    chosen = [int(targets[3]), int(targets[9])]
    some_places, some_targets, some_hidden = collect_hidden(model, batches, words=chosen)
    kept = np.isin(targets, chosen)
    assert 2 <= kept.sum() < len(kept)
    np.testing.assert_array_equal(some_places, places[kept])
    np.testing.assert_array_equal(some_targets, targets[kept])
    np.testing.assert_array_equal(some_hidden, hidden[kept])


def test_an_empty_dataset_is_an_error():
    with pytest.raises(ValueError, match=r"`dataset` must have at least one batch\. Received: "):
        collect_hidden(_model(), [])
