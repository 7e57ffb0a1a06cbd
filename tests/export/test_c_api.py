"""Exported models in the loader that TensorFlow Serving uses, without TensorFlow's Python."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from keras_drill.data import WordTokenizer
from keras_drill.export import TextModel, export_saved_model, export_translator
from keras_drill.export.warmup_requests import example_inputs
from tests.decoding.tiny_models import awd_lstm_with_kerbs, gru_with_mixture
from tests.export.checks import meta_graph
from tests.export.conftest import WORDS
from tests.export.texts import NASTY, random_texts

C_LIBRARY = Path(tf.__file__).parent / "libtensorflow_cc.so.2"
pytestmark = pytest.mark.skipif(
    not C_LIBRARY.exists(), reason="this TensorFlow has no libtensorflow_cc.so.2"
)


def check_same_bytes(module, folder, signature, texts, names=None):
    """All outputs of a signature of one input, or those of `names`."""
    definition = meta_graph(folder).signature_def[signature]
    ((name, feed),) = definition.inputs.items()
    (inputs,) = example_inputs([name], texts).values()
    expected = module.signatures()[signature](tf.constant(inputs))
    names = sorted(expected) if names is None else names
    script = Path(__file__).with_name("answer_with_c_api.py")
    process = subprocess.run(
        [sys.executable, script, folder, feed.name, *[definition.outputs[n].name for n in names]],
        input="".join(f"{value.hex()}\n" for value in inputs),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert process.returncode == 0, process.stderr
    for name, line in zip(names, process.stdout.splitlines(), strict=True):
        value = expected[name].numpy().reshape(-1).tolist()
        if expected[name].dtype == tf.string:
            value = [text.hex() for text in value]
        assert json.loads(line) == value, name


@pytest.mark.slow
def test_the_loader_of_tensorflow_serving_gives_the_same(folder, text_model):
    check_same_bytes(text_model, folder, "examples", NASTY[:5], ["answers", "perplexities"])


@pytest.mark.slow
@pytest.mark.parametrize("signature", ["continue", "score", "top_k", "examples"])
def test_200_random_prompts_are_answered_byte_for_byte(signature, folder, text_model):
    check_same_bytes(text_model, folder, signature, random_texts(200, WORDS.split()))


@pytest.mark.slow
@pytest.mark.parametrize("make", [awd_lstm_with_kerbs, gru_with_mixture])
def test_200_random_prompts_of_other_heads(make, vocabulary, tmp_path):
    model, settings = make(), {"max_new_tokens": 5, "k": 3}
    folder = export_saved_model(model, tmp_path, WordTokenizer(), vocabulary, **settings)
    module = TextModel(model, WordTokenizer(), vocabulary, **settings)
    check_same_bytes(module, folder, "examples", random_texts(200, WORDS.split(), seed=1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signature", "names"),
    [
        # A session optimises the sums of a beam search in its own way: scores agree to 1e-6.
        ("translate", ["texts", "lengths", "source_lengths"]),
        ("examples", None),
    ],
)
def test_200_random_sources(signature, names, translator, tmp_path):
    module, model = translator
    sides = [(side.tokenizer, side.vocabulary) for side in (module.source, module.target)]
    limits = {"max_source_tokens": module.max_source_tokens, "max_tokens": module.max_tokens}
    folder = export_translator(model, tmp_path, *sides, search=module.search, **limits)
    check_same_bytes(module, folder, signature, random_texts(200, WORDS.split(), seed=2), names)
