"""From a corpus to a served version: whole pipelines, and models that no server should get."""

import json
import shutil
from types import SimpleNamespace

import pytest
import tensorflow as tf

from keras_drill.export.saved_model_version import write_module
from pipelines.command_line import main
from pipelines.components.infra_validator import InfraValidator
from pipelines.options import InfraValidatorOptions
from tests.pipelines.corpora import tiny_task

PASSES = [
    word
    for name in ("max_duplicates", "max_in_train", "max_unseen")
    for word in ("--example_validator.allow", name)
]


def arguments(task, folder, **changes):
    config = tiny_task(task, folder / "text", **changes)
    recipe = folder / "recipe.toml"
    recipe.write_text(config.to_toml())
    served = ["--serve-as", "toy", "--pusher.directory", folder / "saved_models"]
    words = [recipe, "--data", config.data.path, "--folder", folder / "store", *served, *PASSES]
    return [str(word) for word in words]


def versions(folder):
    return sorted(
        path.name for path in (folder / "saved_models" / "toy").iterdir() if path.name != ".lock"
    )


@pytest.fixture
def run(tmp_path, capsys):
    """Runs a pipeline on a tiny corpus: its exit status, output and messages."""

    def run_words(*words, task="language-model", **changes):
        changes = {"training_epochs": 3, "optimizer_learning_rate": 0.03, **changes}
        status = main(task, "small-tied", [*arguments(task, tmp_path, **changes), *words])
        return status, *capsys.readouterr()

    return run_words


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "words"), [("language-model", ["--trainer.weights", "int8"]), ("translation", [])]
)
def test_from_a_corpus_to_a_served_model(task, words, run, tmp_path):
    status, out, said = run(*words, task=task)
    assert status == 0, said
    assert versions(tmp_path) == ["1"] and "verdict blessed" in out
    page = next((tmp_path / "store" / "executions").glob("0001/report.html")).read_text()
    assert "Blessed" in page and "The report of the training" in page
    loaded = tf.saved_model.load(str(tmp_path / "saved_models" / "toy" / "1"))
    assert "examples" in loaded.signatures
    card = (tmp_path / "saved_models/toy/1/assets.extra/model_card.md").read_text()
    assert card.startswith("# toy\n") and "| corpus | text |" in card
    assert "| kept in | int8 |" in card or not words
    status, out, _ = run(*words, task=task)  # nothing new
    assert status == 0 and "served already" in out and versions(tmp_path) == ["1"]


@pytest.mark.slow
def test_a_worse_model_is_refused_or_else_rolled_back(run, tmp_path):
    worse = {"training_epochs": 1, "optimizer_learning_rate": 1e-7}
    easy = ["--evaluator.certain", "false", "--evaluator.min_gain", "-1000"]
    easy += ["--evaluator.max_bin_loss", "0"]
    assert run()[0] == 0
    status, _, said = run(**worse)
    assert status == 1 and "Evaluator: the model is refused" in said
    assert "Version 1 continues to be served" in said and versions(tmp_path) == ["1"]
    status, out, said = run(*easy, **worse)
    assert status == 0, said
    assert versions(tmp_path) == ["1", "2"]
    status, out, _ = run("--rollback")
    assert status == 0 and "toy: version 2 is rolled back, version 1 is served now" in out
    status, _, said = run(*easy, **worse)
    assert status == 1 and "was version 2 of toy and was rolled back" in said
    assert versions(tmp_path) == [".2.rolled-back", "1"]
    shutil.rmtree(tmp_path / "saved_models")
    status, _, said = run()
    assert status == 1 and "--force Pusher publishes it again" in said
    assert run("--force", "Pusher")[0] == 0 and versions(tmp_path) == ["1"]


class Answers:
    """A signature `examples` that gets something wrong, if it is told to."""

    def __init__(self, wrong=""):
        self.wrong = wrong

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "examples")], autograph=False)
    def examples(self, examples):
        texts = tf.io.parse_example(examples, {"text": tf.io.FixedLenFeature([], tf.string)})
        lengths = tf.strings.length(texts["text"])
        figures = tf.cast(lengths, tf.float32)
        if self.wrong == "batch":
            figures += tf.cast(tf.size(lengths), tf.float32)
        if self.wrong == "nan":
            figures = tf.math.log(figures - 1.0)
        if self.wrong == "rows":
            figures = figures[:1]
        if self.wrong == "slow":
            forever = tf.while_loop(
                lambda n: n < 2**60, lambda n: n + 1, [tf.constant(0, tf.int64)]
            )
            figures += tf.cast(forever[0], tf.float32)
        problems = tf.fill(tf.shape(lengths), "no text" if self.wrong == "problems" else "")
        return {"perplexities": figures, "answers": texts["text"], "problems": problems}


def validate(folder, timeout=300):
    lines = {"test": {"text": [b"a cat", b"the dog", b""]}}
    task = SimpleNamespace(read_columns=lambda path: lines)
    (folder / "output").mkdir()
    validator = InfraValidator(task, InfraValidatorOptions(timeout=timeout))
    inputs = {"examples": folder, "model": folder}
    facts = validator.run(inputs, folder / "output", lambda *told: None)
    return facts, validator.stopping_reason(folder / "output")


def write(folder, module):
    (folder / "serving").mkdir()
    write_module({"examples": module.examples}, tf.Module(), folder / "serving" / "1", ())


def test_an_operation_that_is_not_served_is_found_without_loading(tmp_path, monkeypatch):
    module = Answers()
    write(tmp_path, module)
    monkeypatch.setattr(
        "pipelines.components.infra_validator.unserved_operations",
        lambda folder: {"Addons>BeamSearch": "node 'a' of the graph"},
    )
    facts, stop = validate(tmp_path)
    assert facts == {"verdict": "refused"}
    assert "TensorFlow Serving does not run Addons>BeamSearch: node 'a' of the graph" in stop


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("", None),
        ("batch", "perplexities of request 1 depends on other requests"),
        ("nan", "examples: the output perplexities contains NaN"),
        ("rows", "examples: the output perplexities has 1 rows for 10 requests"),
        ("problems", "examples: no text"),
    ],
)
def test_every_signature_is_asked_in_a_clean_process(wrong, said, tmp_path):
    write(tmp_path, Answers(wrong))
    facts, stop = validate(tmp_path)
    if said is None:
        assert stop is None and facts["signatures"] == 1
    else:
        assert said in stop and facts["verdict"] == "refused"


@pytest.mark.slow
def test_a_model_that_does_not_answer_in_time_or_cannot_be_loaded_is_refused(tmp_path):
    write(tmp_path, Answers("slow"))
    _, stop = validate(tmp_path, timeout=15)
    assert "no result within infra_validator.timeout = 15 seconds" in stop
    (tmp_path / "output" / "infra_validation.json").unlink()
    (tmp_path / "output").rmdir()
    (tmp_path / "serving" / "1" / "variables" / "variables.index").write_bytes(b"damaged")
    _, stop = validate(tmp_path)
    assert json.loads((tmp_path / "output" / "infra_validation.json").read_text())["wrong"]
    assert "the model cannot be served" in stop
