"""A tiny BERT with random weights that knows two topics, and a text with nouns of both."""

import keras
import keras_hub
import numpy as np

from keras_drill.workbench.sense_induction import TextEncoder

RIVER = ["water", "fish", "boat", "shore", "stream", "mud"]
MONEY = ["loan", "cash", "credit", "coin", "vault", "debt"]
_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = [*_SPECIAL, "the", "near", "with", "bank", "pool", "def", "##ine", *RIVER, *MONEY, "."]
WIDTH = 20


def parts(vocabulary=PIECES):
    """A backbone and a tokenizer."""
    keras.utils.set_random_seed(3)
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=len(vocabulary),
        num_layers=1,
        num_heads=2,
        hidden_dim=WIDTH,
        intermediate_dim=14,
        max_sequence_length=67,
        dropout=0.0,
    )
    random = np.random.default_rng(5)  # of the size that training gives: Keras begins smaller
    for variable in backbone.weights:
        if "embedding" in variable.path or "kernel" in variable.path:
            variable.assign(random.normal(size=variable.shape, scale=0.4))
    table = keras.ops.convert_to_numpy(backbone.token_embedding.embeddings)
    topic = random.normal(size=WIDTH)  # what trained embeddings know
    table[[vocabulary.index(word) for word in RIVER]] += topic
    table[[vocabulary.index(word) for word in MONEY]] -= topic
    backbone.token_embedding.embeddings.assign(table)
    tokenizer = keras_hub.models.BertTokenizer(vocabulary=list(vocabulary), lowercase=True)
    return backbone, tokenizer


def tiny_encoder(window=7):
    return TextEncoder(*parts(), window=window)


def save_preset(folder):
    """Writes a preset in keras-hub's format."""
    backbone, tokenizer = parts()
    backbone.save_to_preset(str(folder))
    tokenizer.save_to_preset(str(folder))
    return folder


def text(lines=160):
    """Lines in which `bank` is of water or of money, and which it is."""
    random = np.random.default_rng(0)
    written, senses = [], []
    for number in range(lines):
        topic = (RIVER, MONEY)[number % 2]
        before, after = random.choice(topic, 3), random.choice(topic, 3)
        written.append(f"The {' '.join(before)} bank near {' '.join(after)}.")
        senses.append(number % 2)
    return written, np.array(senses)
