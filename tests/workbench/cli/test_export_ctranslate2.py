"""`keras-drill export --format ctranslate2`."""

import json
from pathlib import Path

import ctranslate2
import keras
import numpy as np
import pytest

from keras_drill.workbench.tasks.load_config import config_class
from tests.workbench.training.tiny_pairs import TINY, tiny_pairs_config, write_pairs
from tests.workbench.training.untrained import untrained_run


def translate(folder, lines, max_tokens):
    """Greedy outputs of an exported model, without the words that the command never writes."""
    source, target = (
        keras.saving.deserialize_keras_object(json.loads((folder / name).read_text()))
        for name in ("source_tokenizer.json", "target_tokenizer.json")
    )
    results = ctranslate2.Translator(str(folder), intra_threads=1).translate_batch(
        [[word.decode() for word in row] for row in source.tokenize(lines).to_list()],
        beam_size=1,
        min_decoding_length=0,
        max_decoding_length=max_tokens,
        disable_unk=True,
        suppress_sequences=[["<sos>"], ["<pad> "]],
    )
    return [target.detokenize(result.hypotheses[0]).numpy().decode() for result in results]


def test_what_the_format_cannot_hold_is_refused(folder, run_main):
    status, _, said = run_main("export", folder / "tied", "--format", "onnx")
    assert status == 2 and "--format onnx needs a Transformer" in said
    onnx = ["export", folder / "tied", "--format", "onnx", "--quantization", "int8"]
    status, _, said = run_main(*onnx)
    assert status == 2 and "ONNX files are float32. Received: --quantization int8" in said
    status, _, said = run_main("export", folder / "tied", "--format", "ctranslate2")
    assert status == 2 and "needs a Transformer" in said and "backbone is awd-lstm" in said
    status, _, said = run_main("export", folder / "tied", "--quantization", "int8")
    assert status == 2 and "Received: --quantization int8" in said


@pytest.mark.slow
def test_translations_are_those_of_the_command_line(tmp_path, run_main):
    pairs = write_pairs(tmp_path / "pairs")
    config = tiny_pairs_config(
        pairs, backbone_kind="transformer", head_kind="drill", training_epochs=6
    )
    (tmp_path / "options.toml").write_text(config.to_toml())
    run = tmp_path / "de-en"
    status, _, said = run_main("train", tmp_path / "options.toml", "--run", run)
    assert status == 0, said
    export = ["export", run, "--directory", tmp_path / "exported", "--format", "ctranslate2"]
    for setting in (["--num-beams", 3], ["--weights", "int8"], ["--sampler", "top-k"]):
        status, _, said = run_main(*export, *setting)
        assert status == 2 and f"{setting[0]} has no effect with --format ctranslate2" in said
    status, path, said = run_main(*export, "--licence", "CC0-1.0")
    assert status == 0, said
    path = tmp_path / "exported" / "de-en" / "1"
    card = json.loads((path / "model_card.json").read_text())
    assert card["licence"] == "CC0-1.0" and card["weights"] == {"kept in": "float32"}
    lines = (pairs / "test.de").read_text().splitlines()
    found = translate(path, lines, config.decoding.max_tokens)
    status, expected, said = run_main(
        "translate", run, "--file", pairs / "test.de", "--num-beams", 1
    )
    assert status == 0, said
    assert found == expected.splitlines() and len(set(found)) > 1
    status, told, said = run_main(*export, "--quantization", "int8")
    assert status == 0 and told.strip().endswith("de-en/2"), said
    rounded = translate(path.parent / "2", lines, config.decoding.max_tokens)
    assert np.mean(np.array(rounded) == found) > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("task", ["dialog", "autoencoder"])
def test_answers_are_those_of_the_command_line(task, tmp_path, run_main):
    corpus = tmp_path / "text"
    corpus.mkdir()
    turns = [f"who is {name} ? __eou__ {name} is here . __eou__" for name in "abcdef"]
    for split in ("train", "valid", "test"):
        (corpus / f"{split}.txt").write_text("".join(f"{line}\n" for line in turns))
    changes = {"data.path": str(corpus), "backbone.kind": "transformer", "head.kind": "drill"}
    changes |= {"data.tokenizer": "whitespace", "decoding.max_ratio": 0.0}
    config = config_class(task)().replace({**TINY, **changes})
    untrained_run(config, tmp_path / "run")
    export = ["export", tmp_path / "run", "--directory", tmp_path, "--name", "exported"]
    status, path, said = run_main(*export, "--format", "ctranslate2")
    assert status == 0, said
    lines = ["who is a ?", "b is here . __eou__ who is <pad> unseen", "c d e f . ? here is who"]
    (tmp_path / "lines.txt").write_text("".join(f"{line}\n" for line in lines))
    status, expected, said = run_main(
        "answer", tmp_path / "run", "--file", tmp_path / "lines.txt", "--num-beams", 1
    )
    assert status == 0, said
    found = translate(Path(path.strip()), lines, config.decoding.max_tokens)
    assert found == expected.splitlines() and len(set(found)) > 1
