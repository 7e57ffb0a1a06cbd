import json
import re

import numpy as np
import pytest

from keras_drill.workbench.sense_induction import TextEncoder, WordContext, encode_contexts
from tests.workbench.sense_induction.tiny_encoder import (
    PIECES,
    WIDTH,
    parts,
    save_preset,
    tiny_encoder,
)

CONTEXTS = [
    WordContext("The water ", "bank", " near the mud."),
    WordContext("", "bank", ""),
    WordContext("cash " * 30, "bank", " with " * 30),
    WordContext("The water ", "pool", " near the mud."),
]


def naive(encoder, context, masked, window):
    """States of one context, read alone, without padding."""
    before, word, after = (list(encoder.tokenizer.tokenize([part])[0]) for part in context)
    before, after = before[-window:], after[:window]
    word = [PIECES.index("[MASK]")] if masked else word
    ids = np.array([[PIECES.index("[CLS]"), *before, *word, *after, PIECES.index("[SEP]")]])
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    (hidden,) = np.asarray(encoder.backbone(inputs)["sequence_output"])
    return np.stack([hidden[1 + len(before)], hidden.mean(axis=0)])


@pytest.mark.parametrize("masked", [True, False])
def test_states_are_those_of_each_context_read_alone(masked):
    encoder = tiny_encoder(window=7)
    states = encoder.states(CONTEXTS, masked)
    assert states.shape == (4, 2, WIDTH) and states.dtype == "float32"
    for state, context in zip(states, CONTEXTS, strict=True):
        np.testing.assert_allclose(state, naive(encoder, context, masked, 7), atol=1e-5)


def test_only_unmasked_states_tell_the_word():
    encoder = tiny_encoder()
    masked, unmasked = (encoder.states(CONTEXTS, masked) for masked in (True, False))
    np.testing.assert_allclose(masked[0], masked[3], atol=1e-6)
    assert np.abs(unmasked[0] - unmasked[3]).max() > 0.1


def test_texts_alone_are_mean_states():
    encoder = tiny_encoder(window=3)
    texts = ["bank", "", "define", "The water near the mud. cash with cash", "pool"]
    seen = []
    found = encoder.embed(texts, lambda *done: seen.append(done))
    assert found.shape == (5, WIDTH) and found.dtype == "float32"
    assert seen == [(5, 5)]
    for vector, text in zip(found, texts, strict=True):
        ids = [int(id) for id in encoder.tokenizer.tokenize([text])[0]][:7]
        ids = np.array([[PIECES.index("[CLS]"), *ids, PIECES.index("[SEP]")]])
        inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
        hidden = np.asarray(encoder.backbone(inputs)["sequence_output"])[0]
        np.testing.assert_allclose(vector, hidden.mean(axis=0), atol=1e-5)


@pytest.mark.parametrize(
    "texts, received", [("bank", "'bank'"), ([], "[]"), (["bank", None], "an element None")]
)
def test_texts_that_are_no_list_of_strings_are_refused(texts, received):
    with pytest.raises(ValueError, match=rf"`texts` must be .* Received: {re.escape(received)}$"):
        tiny_encoder().embed(texts)


def test_many_texts_are_read_in_batches():
    encoder = tiny_encoder()
    seen = []
    texts = ["water", "fish boat", "the mud near the shore"] * 401
    found = encoder.embed(np.array(texts), lambda *done: seen.append(done))
    assert len(seen) > 1 and seen[-1] == (1203, 1203) and seen == sorted(seen)
    np.testing.assert_allclose(found[-3:], encoder.embed(texts[:3]), atol=1e-5)


def test_words_that_are_no_token_are_told_with_their_pieces():
    encoder = tiny_encoder()
    encoder.check_words(["bank", "Pool"])
    with pytest.raises(
        ValueError, match=r"Received: 'define', which it splits into 'def', '##ine'"
    ):
        encoder.check_words(["bank", "define"])
    with pytest.raises(ValueError, match=r"'zebra', which it splits into '\[UNK\]'"):
        encoder.check_words(["zebra"])
    assert encoder.knows("bank") and not encoder.knows("define")


def test_cached_states_are_read_again(tmp_path, monkeypatch):
    encoder = tiny_encoder()
    contexts = [WordContext(f"{'water ' * (number % 5)}", "bank", "") for number in range(1031)]
    seen = []
    once = encode_contexts(encoder, contexts, True, tmp_path, lambda *done: seen.append(done))
    assert seen == [(1024, 1031), (1031, 1031)] and len(list(tmp_path.iterdir())) == 2
    np.testing.assert_array_equal(once, encode_contexts(encoder, contexts))
    sorted(tmp_path.iterdir())[0].unlink()  # as if it had been stopped
    read = []
    computed = encoder.states
    monkeypatch.setattr(encoder, "states", lambda *a: read.append(len(a[0])) or computed(*a))
    np.testing.assert_array_equal(once, encode_contexts(encoder, contexts, True, tmp_path))
    assert len(read) == 1
    encode_contexts(encoder, contexts[:3], False, tmp_path)
    assert read[1:] == [3]  # of other contexts, or masked otherwise, nothing is taken


def test_a_saved_preset_gives_the_same_states(tmp_path):
    encoder = TextEncoder.from_preset(save_preset(tmp_path / "bert"), window=7)
    assert encoder.fingerprint == tiny_encoder().fingerprint
    np.testing.assert_allclose(encoder.states(CONTEXTS), tiny_encoder().states(CONTEXTS), atol=1e-6)


def test_the_fingerprint_is_of_weights_and_window():
    encoder = tiny_encoder()
    same, other = encoder.fingerprint, tiny_encoder(window=5).fingerprint
    weight = encoder.backbone.weights[0]
    weight.assign(weight + 1e-3)
    assert len({same, other, encoder.fingerprint}) == 3


def test_the_pieces_of_one_file(tmp_path):
    """Hugging Face's fast tokenizers are one file; keras-hub reads `vocab.txt`."""
    from keras_drill.models.text_encoder import _tokenizer

    vocabulary = {piece: number for number, piece in enumerate(PIECES)}
    content = {"model": {"type": "WordPiece", "vocab": vocabulary}}
    content["normalizer"] = {"type": "BertNormalizer", "lowercase": True}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    import keras_hub

    tokenizer = _tokenizer(str(tmp_path), keras_hub)
    (ids,) = tokenizer.tokenize(["The Bank"])
    assert list(ids) == [PIECES.index("the"), PIECES.index("bank")]


def test_folders_that_are_no_preset(tmp_path):
    preset = save_preset(tmp_path / "bert")
    (preset / "model.weights.h5").unlink()
    with pytest.raises(FileNotFoundError, match=r"must have weights, one of model\.weights\.h5"):
        TextEncoder.from_preset(preset)
    with pytest.raises(FileNotFoundError, match=r"config\.json"):
        TextEncoder.from_preset(tmp_path / "nothing")


@pytest.mark.parametrize("address", ["hf://someone/bert", "kaggle://keras/bert/keras/small/1"])
def test_addresses_of_hubs_are_no_folders(address, monkeypatch):
    asked = []

    def from_preset(preset):
        asked.append(preset)
        return parts()[len(asked) - 1]

    monkeypatch.setattr("keras_hub.models.Backbone.from_preset", from_preset)
    monkeypatch.setattr("keras_hub.tokenizers.Tokenizer.from_preset", from_preset)
    assert TextEncoder.from_preset(address, window=7).knows("bank")
    assert asked == [address] * 2


def test_encoders_that_do_not_fit():
    backbone, tokenizer = parts()
    with pytest.raises(ValueError, match=r"`window` .* Received: window=33, .* length 67"):
        TextEncoder(backbone, tokenizer, window=33)
    with pytest.raises(
        ValueError,
        match=r"must have start, end, mask and padding tokens.*\[None, None, None, None\]",
    ):
        TextEncoder(backbone, object())
