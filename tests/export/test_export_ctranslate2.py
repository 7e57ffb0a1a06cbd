"""CTranslate2 gives the log-probabilities and the beams of the model, which Python computes."""

import json
import sys

import ctranslate2
import keras
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

import keras_drill
from keras_drill.data import SentencePieceTokenizer, Vocabulary, WhitespaceTokenizer
from keras_drill.decoding import BeamSearch, LanguageModelStep
from keras_drill.export import ModelCard, Side, export_ctranslate2
from keras_drill.models import RecurrentEncoderDecoder, Transformer, TransformerLanguageBackbone
from keras_drill.senses import SenseEmbedding

STRANGE = ["\u00e9\u4e2d", '"', "\\", "{", "\U0001f600", "\u0085", "\u2028"]
WORDS = ["<pad>", "<unk>", "<eos>", "<sos>", *"abcdefghijkl", *STRANGE]
SOURCE_WORDS = ["<pad>", "<unk>", "<eos>", "<sos>", *"mnopqrstu"]
V, S, D, UNKNOWN, END, START = len(WORDS), len(SOURCE_WORDS), 14, 1, 2, 3
TARGET = WhitespaceTokenizer(), Vocabulary(WORDS)
SOURCE = WhitespaceTokenizer(), Vocabulary(SOURCE_WORDS)
LINES = ["m n o", "p", "q r s t u u t s r q p o n m", "n unseen <pad> <unk> m"]
TARGETS = ["a b c", "d", "l k j i h g f e d c b a", 'a \u2028 <pad> " unseen c']
NEW = 7


def filled(model):
    """The model with weights that make distributions far from uniform."""
    random = np.random.default_rng(3)
    scales = {"gamma": 1.0, "beta": 0.3, "bias": 0.1, "embeddings": 1.0}
    for variable in model.trainable_variables:
        scale = scales.get(variable.name, 0.4)
        variable.assign(random.normal(scale=scale, size=variable.shape))
    return model


def drill(embedding):
    return keras_drill.DrillOutput(V, embedding, depth=2)


def tied(embedding):
    return keras_drill.TiedOutput(V, embedding)


def translation_model(make_head=drill, **options):
    options = {"num_layers": 2, "num_heads": 2, "feed_forward_dim": 13, **options}
    backbone = Transformer(V, D, source_vocabulary_size=S, num_encoder_layers=1, **options)
    return filled(keras_drill.SequenceToSequence(backbone, make_head(backbone.embedding)))


def language_model(make_head=drill, **options):
    options = {"num_layers": 2, "num_heads": 2, "feed_forward_dim": 13, **options}
    backbone = TransformerLanguageBackbone(V, D, **options)
    return filled(keras_drill.LanguageModel(backbone, make_head(backbone.embedding)))


def translator_of(folder, compute_type="float32"):
    return ctranslate2.Translator(str(folder), compute_type=compute_type, intra_threads=1)


def score(translator):
    """Log-probabilities of the words of `TARGETS` and of their end tokens, in one row."""
    results = translator.score_batch(*([line.split(" ") for line in x] for x in (LINES, TARGETS)))
    return np.concatenate([result.log_probs for result in results])


def expected_scores(model):
    """The same by the model itself, with all padding of a batch."""
    sources, _ = Side(*SOURCE).encode(LINES)
    labels, lengths = Side(*TARGET).encode(TARGETS)
    start = tf.fill([len(LINES), 1], START)
    targets = tf.concat([start, labels[:, :-1]], axis=1)
    log_probs = tf.gather(model({"source": sources, "target": targets}), labels, batch_dims=2)
    return tf.ragged.boolean_mask(log_probs, tf.sequence_mask(lengths)).flat_values.numpy()


CASES = {
    "drill": (drill, {}),
    "tied, pre-norm": (tied, {"norm_first": True, "activation": "gelu"}),
    "bilinear": (lambda e: keras_drill.BilinearOutput(V, e), {"activation": "tanh"}),
    "soft cap": (lambda e: keras_drill.TiedOutput(V, e, logit_soft_cap=1.3, use_bias=False), {}),
    "softmax": (
        lambda e: keras_drill.SoftmaxOutput(V),
        {"positions": "learned", "max_length": 19, "scale_embedding": False, "activation": "silu"},
    ),
    "mixed precision": (drill, {"dtype": "mixed_bfloat16"}),
    "padded": (lambda e: keras_drill.SoftmaxOutput(V, pad_labels_to=V + 5), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_log_probabilities_are_those_of_the_model(case, tmp_path):
    make_head, options = CASES[case]
    model = translation_model(make_head, **options)
    found = score(translator_of(export_ctranslate2(model, tmp_path, TARGET, SOURCE)))
    if "dtype" in options:  # CTranslate2 computes in float32
        model = translation_model(make_head)
    np.testing.assert_allclose(found, expected_scores(model), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make_head", [drill, tied])
def test_beams_are_those_of_python(make_head, tmp_path):
    model = translation_model(make_head)
    # Once a beam has ended the two searches differ: CTranslate2 continues others in its place.
    model.head.bias.assign(-50.0 * np.eye(V)[END])
    ids, _ = Side(*SOURCE).encode(LINES)
    tokens = np.tile([[START] + [0] * NEW], (len(LINES), 1))
    step = LanguageModelStep(model)
    lengths = [1] * len(LINES)
    beams = BeamSearch(5)(step, tokens, lengths, inputs={"source": ids}, end_token=END)
    # The name of the pad token, which these random weights write, is one that no text has.
    words = np.array(["<pad> ", *WORDS[1:]])[beams.tokens.numpy()[:, :, 1:]]
    assert len({"".join(row.flat) for row in words}) > 1
    found = translator_of(export_ctranslate2(model, tmp_path, TARGET, SOURCE)).translate_batch(
        [line.split(" ") for line in LINES],
        beam_size=5,
        num_hypotheses=5,
        length_penalty=0,
        min_decoding_length=0,
        max_decoding_length=NEW,
        return_scores=True,
    )
    for row, result in enumerate(found):
        assert result.hypotheses == words[row].tolist()
        np.testing.assert_allclose(result.scores, beams.log_probs[row], rtol=1e-4)


def test_a_language_model_scores_and_continues_as_in_python(tmp_path):
    model = language_model(norm_first=True)
    folder = export_ctranslate2(model, tmp_path, TARGET)
    generator = ctranslate2.Generator(str(folder), intra_threads=1)
    lines = [["<sos>", *line.split(" ")] for line in TARGETS if "unseen" not in line]
    found = generator.score_batch(lines)
    starts = [line[:2] for line in lines]
    continued = generator.generate_batch(starts, max_length=9, return_scores=True)
    for line, result, start, other in zip(lines, found, starts, continued, strict=True):
        ids = TARGET[1].ids(line).numpy()
        log_probs = model(ids[None])[0].numpy()
        expected = log_probs[np.arange(len(ids) - 1), ids[1:]]
        np.testing.assert_allclose(result.log_probs, expected, rtol=1e-4, atol=1e-5)
        written = TARGET[1].ids(["<sos>", *other.sequences[0]]).numpy()  # without its start
        best = model(written[None])[0].numpy().argmax(axis=1)
        np.testing.assert_array_equal(written[len(start) :], best[len(start) - 1 : -1])


def test_int8_is_smaller_and_close(tmp_path):
    model = translation_model()
    folders = [
        export_ctranslate2(model, tmp_path, TARGET, SOURCE, quantization=kind, max_length=17)
        for kind in (None, "int8")
    ]
    assert [folder.name for folder in folders] == ["1", "2"]
    sizes = [(folder / "model.bin").stat().st_size for folder in folders]
    assert sizes[1] < 0.6 * sizes[0]
    found = score(translator_of(folders[1], "int8"))
    expected = expected_scores(model)
    # Weights are random, and so large that rounding matters more than in trained models.
    assert np.abs(found - expected).max() > 0 and np.corrcoef(found, expected)[0, 1] > 0.7


def test_the_folder_has_the_tokenizers_and_a_card(tmp_path):
    lines = ["the cat sat", "a dog ran to the cat"] * 5
    pieces = SentencePieceTokenizer.train(lines, 25)
    words = Vocabulary([*WORDS[:4], *pieces.pieces()])
    backbone = Transformer(len(words), D, num_layers=1, num_heads=2, feed_forward_dim=13)
    model = keras_drill.SequenceToSequence(
        backbone, keras_drill.TiedOutput(len(words), backbone.embedding)
    )
    card = ModelCard("cats", "A tied softmax.", "unknown", "not stated", {}, {})
    folder = export_ctranslate2(
        model, tmp_path, (pieces, words), (pieces, words), max_length=5, card=card
    )
    assert (folder / "shared_vocabulary.json").exists() and (folder / "model_card.md").exists()
    config = json.loads((folder / "source_tokenizer.json").read_text())
    assert keras.saving.deserialize_keras_object(config).fingerprint == pieces.fingerprint
    source, target = (
        sentencepiece.SentencePieceProcessor(str(folder / f"{side}_tokenizer.model"))
        for side in ("source", "target")
    )
    rows = source.encode(["the cat", "a d\u00f6g"], out_type=str)
    assert rows == [
        [p.decode() for p in row] for row in pieces.tokenize(["the cat", "a d\u00f6g"]).to_list()
    ]
    found = translator_of(folder).translate_batch(rows[:1], max_decoding_length=4)
    assert isinstance(target.decode(found[0].hypotheses[0]), str)
    with pytest.raises(RuntimeError, match="No position encodings are defined for positions >= 5"):
        translator_of(folder).translate_batch([["the"] * 7])


def kerbs(embedding):
    return keras_drill.KernelizedBayesianSoftmax(V, num_senses=2 * V, embedding_dim=D)


REFUSED = {
    "recurrent": (
        lambda: keras_drill.SequenceToSequence(
            RecurrentEncoderDecoder(V, 5, units=7), keras_drill.SoftmaxOutput(V)
        ),
        "Received: RecurrentEncoderDecoder",
    ),
    "mixture": (
        lambda: translation_model(lambda e: keras_drill.MixtureOfSoftmaxes(V, e, 3)),
        "composition=Mixture",
    ),
    "kerbs": (lambda: translation_model(kerbs), "composition=MultiSense"),
    "senses that are read": (
        lambda: translation_model(
            tied, embedding=SenseEmbedding(V, D, num_senses=2 * V, weighting="usage")
        ),
        "Received: a SenseEmbedding",
    ),
    "dual": (
        lambda: translation_model(lambda e: keras_drill.DualNonlinearOutput(V, e, 11)),
        "Received: label_encoder=DualNonlinearLabelEncoder",
    ),
    "network of hidden states": (
        lambda: translation_model(
            lambda e: keras_drill.OutputLayer(
                V, e, label_encoder=keras_drill.ResidualLabelEncoder(dual=True)
            )
        ),
        "Received: label_encoder=ResidualLabelEncoder",
    ),
    "activation": (lambda: translation_model(activation="elu"), "Received: activation='elu'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_ctranslate2_cannot_compute_is_refused(case, tmp_path):
    make_model, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        export_ctranslate2(make_model(), tmp_path / "models", TARGET, SOURCE)
    assert not (tmp_path / "models").exists()


def test_a_quantized_model_is_refused(tmp_path):
    model = translation_model(tied)
    model.backbone.decoder.transformer_layers[0].inner.quantize("int8")
    with pytest.raises(ValueError, match=r"quantized layers \['decoder/layer_0/inner'\]"):
        export_ctranslate2(model, tmp_path, TARGET, SOURCE)


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        ((TARGET, None), "Received: source=None for a model with a source"),
        ((SOURCE, SOURCE), f"`target` must have a vocabulary of the model's {V} words"),
        ((TARGET, TARGET), f"`source` must have a vocabulary of the model's {S} words"),
        (
            (TARGET, (SOURCE[0], Vocabulary(SOURCE_WORDS, end_token="<sos>"))),
            "the same end token. Received: .* in `source`",
        ),
    ],
)
def test_vocabularies_fit_the_model(sides, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        export_ctranslate2(translation_model(), tmp_path, *sides)


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(ImportError, match=r"pip install 'keras-drill\[ctranslate2\]'"):
        export_ctranslate2(translation_model(), tmp_path, TARGET, SOURCE)
