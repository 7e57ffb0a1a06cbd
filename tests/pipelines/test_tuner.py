"""The search of options: what it is told, what it tries, and that a kill changes nothing."""

import json

import keras_tuner
import pytest

from keras_drill.workbench.tasks.errors import ConfigError
from keras_drill.workbench.tasks.make_task import make_task
from pipelines.command_line import main
from pipelines.components import tuner as tuner_module
from pipelines.components.example_gen import ExampleGen
from pipelines.components.search_space import Searched
from pipelines.components.spans import find_span
from pipelines.components.trainer import Trainer
from pipelines.components.transform import Transform
from pipelines.components.tuner import Tuner
from pipelines.engine.artifact_store import ArtifactStore
from pipelines.engine.run_pipeline import run_pipeline
from pipelines.options import TrainerOptions, TunerOptions
from tests.pipelines.corpora import tiny_task
from tests.pipelines.test_served_models import arguments

RATE_NAME = "optimizer.learning_rate"
RATE = f"{RATE_NAME} 0.003..0.03 log"


@pytest.fixture
def config(tmp_path):
    return tiny_task("language-model", tmp_path / "text", training_epochs=1)


@pytest.fixture
def transformed(config, tmp_path):
    """What the search reads, and a folder that it may write to."""
    task = make_task(config)
    data, span = find_span(config.data.path)
    store = ArtifactStore(tmp_path / "store")
    execution = run_pipeline([ExampleGen(task, data, span), Transform(task)], store)
    return {"transformed": store.folder / execution.steps[1].artifact}


def search(config, transformed, output, *lines, **options):
    """The facts, the trials and the best values of a search that goes on where it was."""
    output.mkdir(exist_ok=True)
    component = Tuner(config, TunerOptions(search=lines, **options))
    facts = component.run(transformed, output, lambda *done: None)
    trials, best = (
        json.loads((output / name).read_text()) for name in ("trials.json", "best.json")
    )
    return facts, trials, best


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (RATE, Searched("optimizer.learning_rate", (0.003, 0.03), True, True)),
        ("optimizer.clip_norm  1 .. 5", None),
        ("data.batch_size 3..7", Searched("data.batch_size", (3, 7), True)),
        ("head.use_bias true,false", Searched("head.use_bias", (True, False))),
        ("optimizer.learning_rate 0.01", Searched("optimizer.learning_rate", (0.01,))),
    ],
)
def test_lines_are_read(config, text, expected):
    if expected is None:
        with pytest.raises(ConfigError, match=r"tuner\.search must be like .*1 \.\. 5"):
            Searched.parse(text, config)
    else:
        assert Searched.parse(text, config) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be like"),
        ("optimizer.learning_rate", "must be like"),
        ("optimizer.learning_rate 1..2..3", "must be like"),
        ("optimizer.learning_rate 1..2 linear", "must be like"),
        ("optimizer.learning_rate 1,2 log", "must be like"),
        ("optimizer.learning_rate 2..1", "LOW less than HIGH"),
        ("optimizer.clip_norm 0..1 log", "above 0"),
        ("head.use_bias false..true", "must be like"),
        ("optimizer.learning_rate 1,2,1", "a value twice"),
        ("optimizer.learning_rate fast,slow", "optimizer.learning_rate"),
        ("optimizer.rate 1..2", "optimizer.rate"),
        ("nothing 1..2", "nothing"),
    ],
)
def test_what_cannot_be_searched(config, text, message):
    with pytest.raises(ConfigError, match=message):
        Searched.parse(text, config)


def test_values_are_those_that_were_named(config):
    space = keras_tuner.HyperParameters()
    for text in (RATE, "data.batch_size 3..7", "head.use_bias true,false"):
        Searched.parse(text, config).add_to(space)
    for _ in range(20):
        values = [each.random_sample() for each in space.space]
        assert 0.003 <= values[0] <= 0.03 and values[1] in range(3, 8)
        assert values[2] in (True, False)
    assert space.space[0].sampling == "log" and space.space[1].sampling == "linear"


def test_the_words_and_the_same_option_twice_are_refused(config):
    with pytest.raises(ConfigError, match=r"cannot have data\.min_count: the vocabulary"):
        Tuner(config, TunerOptions(search=("data.min_count 1..3",)))
    with pytest.raises(ConfigError, match=r"cannot have data\.path: all trials must use"):
        Tuner(config, TunerOptions(search=("data.path a.txt,b.txt",)))
    with pytest.raises(ConfigError, match=r"names an option twice: optimizer\.learning_rate"):
        Tuner(config, TunerOptions(search=(RATE, f"{RATE_NAME} 1,2")))


def test_keras_tuner_is_asked_for(config, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'keras-drill\[tuner\]'"):
        Tuner(config, TunerOptions(search=(RATE,)))


@pytest.mark.slow
def test_the_least_perplexity_wins_and_divergence_is_a_trial(config, transformed, tmp_path):
    line = f"{RATE_NAME} 0.01,0.0001,1e30"
    facts, trials, best = search(config, transformed, tmp_path / "out", line, trials=5)
    found = {trial["values"][RATE_NAME]: trial["valid_perplexity"] for trial in trials}
    assert len(trials) == 3 and found[1e30] is None  # there are no more than three values
    assert found[0.01] < found[0.0001] and best == {RATE_NAME: 0.01}
    assert facts["trials"] == 3 and facts["learning_rate"] == 0.01
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"best.json", "trials.json"}
    with pytest.raises(ConfigError, match="all training runs of the search diverged"):
        search(config, transformed, tmp_path / "none", f"{RATE_NAME} 1e30,1e29")


class Killed(BaseException):
    """What stands for SIGKILL: nothing of the program catches it."""


class Trainings:
    """Stands for trainings whose perplexity follows from the values, and may be killed.

    The names of the trials' folders are in `done`; the next killing is in `kill`: before the
    training with that number, or after it.
    """

    def __init__(self):
        self.done = []
        self.kill = ()

    def __call__(self, config, folder):
        number = len(self.done)
        if self.kill == ("before", number):
            raise Killed
        folder.mkdir(parents=True, exist_ok=True)
        self.done.append(folder.name)
        if self.kill == ("after", number):
            raise Killed
        if config.backbone.hidden_dropout > 0.3:
            return None
        return 100 * config.optimizer.learning_rate + config.backbone.hidden_dropout


@pytest.fixture
def trainings(monkeypatch):
    instead = Trainings()
    monkeypatch.setattr(tuner_module, "_perplexity", instead)
    return instead


@pytest.mark.parametrize("method", ["random", "bayesian"])
def test_a_killed_search_ends_as_another(method, config, transformed, tmp_path, trainings):
    def searched(folder):
        lines = (RATE, "backbone.hidden_dropout 0..0.5")
        output = tmp_path / folder
        return search(config, transformed, output, *lines, trials=7, method=method, seed=3)

    expected = searched("whole")
    assert len({tuple(trial["values"].values()) for trial in expected[1]}) == 7
    assert None in [trial["valid_perplexity"] for trial in expected[1]]
    trainings.done.clear()
    for kill in (("before", 0), ("after", 0), ("before", 3), ("after", 6)):
        trainings.kill = kill
        with pytest.raises(Killed):
            searched("killed")
    trainings.kill = ()
    assert searched("killed") == expected
    assert trainings.done == ["0", "0", "1", "2", "3", "4", "5", "5", "6"]  # two were killed after


def test_epochs_of_trials_and_the_seed_are_the_searchs_own(
    config, transformed, tmp_path, trainings
):
    component = Tuner(config, TunerOptions(search=(RATE,), epochs=2))
    assert component.config.training.epochs == 2 and config.training.epochs == 1
    first, second = (
        search(config, transformed, tmp_path / str(seed), RATE, trials=1, seed=seed)[1]
        for seed in (0, 1)
    )
    assert first[0]["values"] != second[0]["values"]
    settings = {json.dumps(Tuner(config, TunerOptions((RATE,), seed=n)).settings()) for n in (0, 1)}
    assert len(settings) == 2


@pytest.mark.slow
@pytest.mark.parametrize("task", ["language-model", "translation"])
def test_the_trainer_takes_the_best(task, tmp_path, capsys):
    words = ["--tuner.search", "optimizer.learning_rate 0.03,0.0001", "--tuner.epochs", "2"]
    given = arguments(task, tmp_path, training_epochs=3)
    assert main(task, "small-tied", [*given, *words]) == 0, capsys.readouterr()[1]
    out = capsys.readouterr()[0]
    assert "Tuner" in out and "learning_rate 0.03" in out
    store = tmp_path / "store"
    configs = list(store.glob("artifacts/model/*/run/config.toml"))
    assert len(configs) == 1 and "learning_rate = 0.03" in configs[0].read_text()
    page = (store / "executions/0001/report.html").read_text()
    assert "Trials, the best first" in page and "validation perplexity" in page
    assert main(task, "small-tied", [*given, *words]) == 0
    kept = capsys.readouterr()[0]
    assert "Tuner" in kept and len(list(store.glob("artifacts/hyperparameters/*"))) == 1


def test_trainers_read_what_a_search_found_only_where_there_is_one(config):
    assert "hyperparameters" in Trainer(config, TrainerOptions(), tuned=True).reads
    assert "hyperparameters" not in Trainer(config).reads


def test_a_search_that_cannot_be_is_one_line(tmp_path, capsys):
    words = ["--tuner.search", "optimizer.learning_rate 3..2"]
    assert (
        main("language-model", "small-tied", [*arguments("language-model", tmp_path), *words]) == 2
    )
    said = capsys.readouterr()[1]
    assert "LOW less than HIGH" in said and "Traceback" not in said
