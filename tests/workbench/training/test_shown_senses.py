"""Examples of senses from the training text, in exported models and on the terminal."""

import re

import numpy as np
import pytest
import tensorflow as tf

from keras_drill.workbench.cli.main import main
from keras_drill.workbench.training.export_run import export_run
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.run_folder import RunFolder
from keras_drill.workbench.training.shown_senses import contexts_for_export
from tests.workbench.training.tiny import tiny_config, write_corpus


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kerbs")
    config = tiny_config(
        write_corpus(folder / "text"), head_kind="kerbs", senses_interval=13, training_epochs=1
    )
    (folder / "run.toml").write_text(config.to_toml())
    assert main(["train", str(folder / "run.toml"), "--run", str(folder / "run")]) == 0
    return LoadedRun.load(RunFolder(folder / "run"))


@pytest.mark.slow
def test_examples_are_of_the_text_and_of_the_sense(run, tmp_path):
    version = export_run(run, tmp_path / "kerbs", sense_contexts=2)
    loaded = tf.saved_model.load(str(version))
    of_word = np.array(run.model.head.allocation.sense_to_word)
    answer = loaded.signatures["sense_contexts"](tf.range(len(of_word)))
    before, after, probabilities = (
        answer[name].numpy() for name in ("before", "after", "probabilities")
    )
    several = np.bincount(of_word)[of_word] > 1
    assert before.shape[1] == 2 and several.any()
    assert not probabilities[~several].any()  # a word with one sense needs no examples
    found = np.argwhere(probabilities)
    assert len(found) > 5
    text = " ".join(run.vocabulary.tokens[id] for id in run.task.target_ids(texts_of(run)["train"]))
    for sense, place in found:
        word = run.vocabulary.tokens[of_word[sense]]
        parts = (before[sense, place].decode(), word, after[sense, place].decode())
        assert " ".join(part for part in parts if part) in text
        number = np.count_nonzero(of_word == of_word[sense])
        assert probabilities[sense, place] >= 1 / number - 1e-6  # it is the most probable there
    best_first = probabilities[:, :-1] >= probabilities[:, 1:]
    assert best_first.all()
    card = (version / "assets.extra" / "model_card.md").read_text()
    assert "words of its training text" in card


def texts_of(run):
    return run.task.read_texts(run.vocabulary, None)


@pytest.mark.slow
def test_examples_are_those_that_the_terminal_shows(run, capsys):
    contexts = contexts_for_export(run, k=1)
    of_word = np.array(run.model.head.allocation.sense_to_word)
    shown = contexts(np.arange(len(of_word)))
    probabilities = shown["probabilities"].numpy()[:, 0]
    words = of_word[np.flatnonzero(probabilities)]
    special = set(run.vocabulary.special_ids)
    word = next(id for id in words.tolist() if id not in special)
    folder = str(run.folder.path)
    capsys.readouterr()
    assert main(["senses", folder, run.vocabulary.tokens[word], "--contexts", "1"]) == 0
    out = capsys.readouterr()[0]
    senses = np.array(run.model.head.allocation.senses_of_word)[word]
    for number, sense in enumerate(senses[senses >= 0].tolist(), start=1):
        assert re.search(rf"^ +{number} +{sense} +\d+ %", out, re.M)
        if probabilities[sense] > 0:
            assert f"  sense {number}  {probabilities[sense]:.2f}  " in out


@pytest.mark.slow
def test_models_without_senses_have_no_examples(run, tmp_path):
    config = run.config.replace({"head.kind": "tied"})
    other = LoadedRun(run.folder, config, run.task, run.model, run.vocabulary)
    with pytest.raises(RuntimeError, match="`sense_contexts` must be 0 unless"):
        export_run(other, tmp_path / "tied", sense_contexts=1)
