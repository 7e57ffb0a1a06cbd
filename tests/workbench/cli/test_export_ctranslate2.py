"""`keras-drill export --format ctranslate2` and `--format onnx`."""

import json
from pathlib import Path

import ctranslate2
import keras
import pytest

from tests.workbench.training.tiny_pairs import tiny_pairs_config, write_pairs


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
    source, target = (
        keras.saving.deserialize_keras_object(json.loads((path / name).read_text()))
        for name in ("source_tokenizer.json", "target_tokenizer.json")
    )
    lines = (pairs / "test.de").read_text().splitlines()
    results = ctranslate2.Translator(str(path), intra_threads=1).translate_batch(
        [[word.decode() for word in row] for row in source.tokenize(lines).to_list()],
        beam_size=1,
        min_decoding_length=0,
        max_decoding_length=config.decoding.max_tokens,
        disable_unk=True,
    )
    found = [target.detokenize(result.hypotheses[0]).numpy().decode() for result in results]
    status, expected, said = run_main(
        "translate", run, "--file", pairs / "test.de", "--num-beams", 1
    )
    assert status == 0, said
    assert found == expected.splitlines() and len(set(found)) > 1
    status, path, said = run_main(*export, "--quantization", "int8")
    assert status == 0 and path.strip().endswith("de-en/2"), said
    pytest.importorskip("tf2onnx")
    status, path, said = run_main(*export[:-1], "onnx")
    assert status == 0 and (Path(path.strip()) / "model.onnx").exists(), said
