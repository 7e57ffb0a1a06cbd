import numpy as np
import pytest

from keras_drill.data import (
    SentencePieceTokenizer,
    Vocabulary,
    WhitespaceTokenizer,
    WordTokenizer,
)
from keras_drill.decoding import BeamSearch, TopKSampler
from keras_drill.export import Side, TextModel, Translator, export_saved_model
from keras_drill.layers import Attention
from keras_drill.models import RecurrentEncoderDecoder
from keras_drill.models.sequence_to_sequence import SequenceToSequence
from keras_drill.output_layer import OutputLayer
from tests.decoding.tiny_models import awd_lstm_with_drill

WORDS = "<unk> <eos> the cat sat on a mat . , dog ran é ( ) it don't was here there when and or"
SPECIAL = ["<pad>", "<unk>", "<eos>", "<sos>"]
SENTENCES = [b"the cat sat on a mat .", b"a dog was there", b"it ran , and the dog ran"]
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


@pytest.fixture(scope="package")
def translator():
    """Pieces on one side, words on the other; distributions far from uniform."""
    pieces = SentencePieceTokenizer.train([line.decode() for line in SENTENCES], 31)
    source = Vocabulary([*SPECIAL, *pieces.pieces()])
    words = WhitespaceTokenizer()
    target = Vocabulary([*SPECIAL, *sorted({w.decode() for s in SENTENCES for w in s.split()})])
    backbone = RecurrentEncoderDecoder(
        len(target), 5, units=7, attention=Attention(), source_vocabulary_size=len(source)
    )
    model = SequenceToSequence(backbone, OutputLayer(len(target)))
    tokens = np.ones((1, 1), "int32")
    model({"source": tokens, "target": tokens})
    random = np.random.default_rng(17)
    for variable in model.trainable_variables:
        variable.assign(random.normal(scale=0.9, size=variable.shape))
    search = BeamSearch(3, 1.0, num_results=2)
    return Translator(model, Side(pieces, source), Side(words, target), search, 23, 13), model
