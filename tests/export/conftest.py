import pytest

from keras_drill.data import Vocabulary, WordTokenizer
from keras_drill.decoding import TopKSampler
from keras_drill.export import TextModel, export_saved_model
from tests.decoding.tiny_models import awd_lstm_with_drill

WORDS = "<unk> <eos> the cat sat on a mat . , dog ran é ( ) it don't was here there when and or"
SETTINGS = {"sampler": TopKSampler(7), "seed": 5, "max_new_tokens": 11, "k": 3}


@pytest.fixture(scope="package")
def model():
    return awd_lstm_with_drill()


@pytest.fixture(scope="package")
def vocabulary():
    return Vocabulary(WORDS.split())


@pytest.fixture(scope="package")
def text_model(model, vocabulary):
    """What the exporting process answers with."""
    return TextModel(model, WordTokenizer(), vocabulary, **SETTINGS)


@pytest.fixture(scope="package")
def folder(model, vocabulary, tmp_path_factory):
    directory = tmp_path_factory.mktemp("saved_models") / "cats"
    return export_saved_model(model, directory, WordTokenizer(), vocabulary, **SETTINGS)
