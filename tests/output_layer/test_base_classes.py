"""Base classes are abstract."""

import pytest

import keras_drill


@pytest.mark.parametrize(
    "base",
    [
        keras_drill.compositions.Composition,
        keras_drill.scores.Score,
        keras_drill.LabelEncoder,
    ],
)
def test_base_classes_cannot_be_instantiated(base):
    with pytest.raises(TypeError, match=base.__name__):
        base()
