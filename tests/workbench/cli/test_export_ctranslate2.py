"""`keras-drill export --format ctranslate2` and `--format onnx`."""

import json
from pathlib import Path

import ctranslate2
import keras
import numpy as np
import pytest

from keras_drill.workbench.tasks.autoencoder.config import AutoencoderConfig
from keras_drill.workbench.tasks.dialog.config import DialogConfig
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.run_folder import RunFolder
from tests.workbench.training.tiny_pairs import TINY, tiny_pairs_config, write_pairs
from tests.workbench.training.untrained import untrained_run


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


def translate(path, lines, max_tokens):
    """Outputs of a greedy search by CTranslate2."""
    source, target = (
        keras.saving.deserialize_keras_object(json.loads((path / name).read_text()))
        for name in ("source_tokenizer.json", "target_tokenizer.json")
    )
    results = ctranslate2.Translator(str(path), intra_threads=1).translate_batch(
        [[word.decode() for word in row] for row in source.tokenize(lines).to_list()],
        beam_size=1,
        min_decoding_length=0,
        max_decoding_length=max_tokens,
        disable_unk=True,
    )
    return [target.detokenize(result.hypotheses[0]).numpy().decode() for result in results]


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
    status, path, said = run_main(*export, "--quantization", "int8")
    assert status == 0 and path.strip().endswith("de-en/2"), said


TASKS = {
    "dialog": (DialogConfig, {"data.context_turns": 2}, "{} __eou__ {} __eou__ {} __eou__"),
    "autoencoder": (AutoencoderConfig, {}, "{}"),
}


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_other_tasks_with_sources(task, tmp_path, run_main):
    make_config, options, form = TASKS[task]
    pairs = write_pairs(tmp_path / "pairs")
    (tmp_path / "text").mkdir()
    for split in ("train", "valid", "test"):
        lines = (pairs / f"{split}.en").read_text().splitlines()
        texts = [form.format(*turns) for turns in zip(lines, lines[1:], lines[2:], strict=False)]
        (tmp_path / "text" / f"{split}.txt").write_text("".join(f"{text}\n" for text in texts))
    options = {**TINY, "backbone.kind": "transformer", "training.seed": 1, **options}
    config = make_config().replace({**options, "data.path": str(tmp_path / "text")})
    run = untrained_run(config, tmp_path / "run").path
    export = ["export", run, "--directory", tmp_path / "exported", "--format"]
    status, path, said = run_main(*export, "ctranslate2")
    assert status == 0, said
    lines = (pairs / "test.en").read_text().splitlines()
    found = translate(Path(path.strip()), lines, config.decoding.max_tokens)
    greedy = ("--num-beams", 1, "--no-repeat-ngram", 0, "--min-length", 0)
    status, expected, said = run_main("translate", run, "--file", pairs / "test.en", *greedy)
    assert status == 0, said
    assert found == expected.splitlines() and len(set(found)) > 1
    pytest.importorskip("tf2onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    status, path, said = run_main(*export, "onnx")
    assert status == 0, said
    session = onnxruntime.InferenceSession(str(Path(path.strip()) / "model.onnx"))
    ids = np.random.default_rng(7).integers(4, 20, (2, 3, 5)).astype("int32")
    inputs = dict(zip(("source", "target"), ids, strict=True))
    np.testing.assert_allclose(
        session.run(None, inputs)[0],
        LoadedRun.load(RunFolder(run)).model(inputs),
        rtol=1e-4,
        atol=1e-5,
    )
