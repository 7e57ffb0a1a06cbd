"""Exported models of this package, small and untrained."""

import keras

import keras_drill
from keras_drill.data import Vocabulary, WhitespaceTokenizer
from keras_drill.export import SenseContexts, export_saved_model, export_translator
from tests.decoding.tiny_models import awd_lstm_with_kerbs, gru_with_mixture

# A word that a page that took words for markup would run.
EVIL = "<img/src=x/onerror=alert(1)>"
WORDS = f"<unk> <eos> the cat sat on a mat . , dog ran {EVIL} שלום and or when where here é ( ) it"
SOURCES = "<pad> <unk> <eos> <sos> ein a Haus house"


def export_all(base):
    """Writes `kerbs`, whose words have senses, `mixture`, and `de-en`, which translates."""
    tokenizer = WhitespaceTokenizer()
    vocabulary = Vocabulary(WORDS.split())
    contexts = {
        "kerbs": SenseContexts([[(f"before {sense}", EVIL, 0.5)] for sense in range(99)]),
        "mixture": None,
    }
    for name, make in {"kerbs": awd_lstm_with_kerbs, "mixture": gru_with_mixture}.items():
        export_saved_model(
            make(),
            base / name,
            tokenizer,
            vocabulary,
            max_new_tokens=13,
            k=5,
            contexts=contexts[name],
        )
    keras.utils.set_random_seed(17)
    words = Vocabulary(SOURCES.split())
    backbone = keras_drill.models.RecurrentEncoderDecoder(8, 4, units=5)
    model = keras_drill.SequenceToSequence(backbone, keras_drill.OutputLayer(8))
    side = (tokenizer, words)
    search = keras_drill.decoding.BeamSearch(3, num_results=2)
    export_translator(model, base / "de-en", side, side, search=search)
