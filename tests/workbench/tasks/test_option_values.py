"""Every option of every configuration has the value, in what is built, that the configuration says.

Each is given two values at least, in a configuration in which it counts; the objects that are built
of it must have them. So an option that is ignored, or that a constructor contradicts, is noticed.
"""

import pytest

from keras_drill.workbench.tasks.load_config import CONFIGS, config_class
from tests.workbench.tasks.built import Built
from tests.workbench.tasks.option_cases import CASES, PAIRS, SHARED
from tests.workbench.training.tiny import TINY as TINY_TEXT
from tests.workbench.training.tiny_pairs import TINY as TINY_PAIRS

# What is not in the objects that are built, and the test that sees its effect.
ELSEWHERE = {
    "data.path": "tests/workbench/training/test_training.py::test_a_run_is_evaluated_and_reported",
    "data.source": "tests/workbench/tasks/test_text_options.py::"
    "test_pairs_of_tensorflow_datasets_are_read",
    "data.target": "tests/workbench/tasks/test_text_options.py::"
    "test_pairs_of_tensorflow_datasets_are_read",
    "data.tokenizer_model": "tests/workbench/tasks/test_text_options.py::"
    "test_an_existing_tokenizer_is_taken",
    "data.source_tokenizer_model": "tests/workbench/tasks/test_text_options.py::"
    "test_an_existing_tokenizer_is_taken",
    "data.user_defined_symbols": "tests/workbench/tasks/test_text_options.py::"
    "test_text_is_preprocessed_and_words_are_the_same_after_saving",
    "data.character_coverage": "tests/workbench/tasks/test_text_options.py::"
    "test_rare_characters_are_left_out_by_coverage",
    "training.stopping": "tests/workbench/training/test_checkpoint_order.py::"
    "test_the_criterion_of_the_fine_tuning_stage",
    "head.descriptions": "tests/workbench/training/test_described_words.py::"
    "test_a_run_begun_anew_with_other_options_describes_words_anew",
    "training.epochs": "tests/workbench/training/test_training.py::"
    "test_early_stop_and_more_patience",
    "training.strategy": "tests/distribute/test_train_command.py::"
    "test_what_is_written_and_said_is_that_of_one_device",
    "training.precision": "tests/workbench/training/test_described_words.py::"
    "test_described_words_in_half_precision",
    "training.deterministic": "tests/workbench/training/test_kill.py::"
    "test_interrupted_and_killed_runs_end_with_the_same_bits",
    "training.checkpoint_every": "tests/workbench/training/test_trained_runs.py::"
    "test_a_chosen_checkpoint",
    "training.keep_checkpoints": "tests/workbench/training/test_checkpoints.py::"
    "test_the_last_two_are_kept",
    "training.average_checkpoints": "tests/workbench/training/test_trained_runs.py::"
    "test_the_mean_of_checkpoints_is_evaluated_where_it_is_better",
    "training.start_from": "tests/workbench/training/test_trained_runs.py::"
    "test_weights_of_another_run",
    "training.tensorboard": "tests/workbench/training/test_training.py::"
    "test_a_run_is_evaluated_and_reported",
    "samples.prompts": "tests/workbench/training/test_training.py::"
    "test_a_run_is_evaluated_and_reported",
    "decoding.validation_sentences": "tests/workbench/tasks/sequence_to_sequence/test_scoring.py::"
    "test_training_and_evaluation_score_alike",
    "decoding.attention_maps": "tests/workbench/training/test_translation_runs.py::"
    "test_a_run_is_evaluated_and_reported",
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A small text for each task."""
    found = {}
    lines = ["The cat sees a dog .", "A dog hears the CAT .", "the dog and a cat ﬁé"] * 9
    for task in ("language-model", "translation", "dialog", "autoencoder"):
        found[task] = folder = tmp_path_factory.mktemp(task)
        (folder / "words.txt").write_text("<unk>\n<eos>\nthe\nzebra\n")
        for split in ("train", "valid", "test"):
            text = "\n".join([*lines, "once"]) + "\n"
            if task == "dialog":
                known = "Hello . __eou__ Hi . __eou__ Fine . __eou__ a | b c |\n"
                others = "".join(
                    f"{split} {n} __eou__ CAT cat __eou__ the dog __eou__\n" for n in range(7)
                )
                others += f"{split} | other turns |\n"
                text = known * 2 + others if split == "train" else known
            if task == "translation":
                (folder / f"{split}.de").write_text(text)
                (folder / f"{split}.en").write_text(text)
            else:
                (folder / f"{split}.txt").write_text(text)
    return found


def config_of(case, task, value, folder):
    tiny = TINY_TEXT if task == "language-model" else {**TINY_PAIRS, "data.tokenizer": "words"}
    tiny = {**tiny, "backbone.embedding_dim": 14, "optimizer.kind": "sgd"}
    options = config_class(task).options()
    defaults = {"optimizer.scale_with_length": task == "language-model"}
    changes = {**tiny, **defaults, "data.path": str(folder), **case.context, case.name: value}
    if value and case.name in ("data.vocabulary", "data.on_disk"):
        changes[case.name] = str(folder / value)
    return config_class(task)().replace(
        {name: change for name, change in changes.items() if name in options}
    )


PARAMETERS = [(case, task) for case in CASES for task in case.tasks]


@pytest.mark.parametrize(
    ("case", "task"), PARAMETERS, ids=[f"{case.name}-{task}" for case, task in PARAMETERS]
)
def test_what_the_configuration_says_is_what_is_built(case, task, folders, monkeypatch):
    expected = case.values if isinstance(case.values, dict) else {one: one for one in case.values}
    for value, told in expected.items():
        value = list(value) if isinstance(value, tuple) else value
        built = Built(config_of(case, task, value, folders[task]), folders[task])
        if case.name in ("samples.max_tokens", "samples.seed"):
            built.sampled = _sampled(built, monkeypatch)
        seen = case.see(built)
        assert seen == (pytest.approx(told) if isinstance(told, float) else told), (value, seen)


def _sampled(built, monkeypatch):
    """The arguments of the module that writes the samples of a report."""
    from keras_drill.workbench.tasks.language_model import task as module

    told = {}

    def text_model(model, words, sampler, seed, max_tokens):
        told.update(seed=seed, max_tokens=max_tokens)

    monkeypatch.setattr(built.task, "text_model", text_model)
    monkeypatch.setattr(module, "write_samples", lambda *_: ())
    built.task.config = built.config.replace({"samples.prompts": ["the"]})
    built.task.evaluate(None, built.words, {})
    return told


def test_every_option_is_looked_at(request):
    for one in CONFIGS:
        seen = {case.name for case in CASES if one.task in case.tasks}
        if one.task in PAIRS:  # which share all sections but that of the data
            seen |= {case.name for case in CASES if "translation" in case.tasks}
        seen |= {case.name for case in CASES if case.name.split(".")[0] in SHARED}
        missing = set(one.options()) - seen - set(ELSEWHERE)
        assert not missing, one.task
    root = request.config.rootpath
    for test in ELSEWHERE.values():
        file, _, name = test.partition("::")
        assert f"def {name}(" in (root / file).read_text(encoding="utf-8"), test
