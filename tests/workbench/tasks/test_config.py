import json
import re
from pathlib import Path

import keras
import pytest

from keras_drill.distribute import STRATEGIES
from keras_drill.workbench.tasks.config import check_options
from keras_drill.workbench.tasks.errors import ConfigError
from keras_drill.workbench.tasks.language_model.config import LanguageModelConfig
from keras_drill.workbench.tasks.load_config import load_config, recipe_names, recipe_text

PAIRS = "small-translation-tied"
RESULTS = Path(__file__).parents[3] / "results"


@pytest.mark.parametrize("name", recipe_names())
def test_recipes_show_every_option_and_what_it_does(name):
    assert recipe_text(name) == load_config(name).to_toml()


@pytest.mark.parametrize("name", recipe_names())
def test_recipes_say_whose_settings_they_have_and_figures_of_results_are_in_their_file(name):
    config = load_config(name)
    assert re.match(r"the authors' \(\S.*\)$|ours($|: )", config.origin)
    if config.result != "not trained here":
        found = re.fullmatch(r"(.* (\d\S*) .*) \(results/(\S+\.json), (.+)\)", config.result)
        tables = json.loads((RESULTS / found[3]).read_text())["tables"].values()
        rows = [row for table in tables for row in table["rows"] if row[0] == found[4]]
        figures = set(re.findall(r"\d+\.\d+", found[1]))
        assert any(figures <= set(re.findall(r"\d+\.\d+", str(row))) for row in rows)


def test_a_recipe_with_other_options_is_none():
    recipe = load_config("ptb-awd-lstm-drill")
    other = recipe.replace({"data.path": "ptb"})
    assert recipe.origin and (other.origin, other.result) == ("", "")
    assert "origin" not in other.to_toml() and "origin" not in other.to_mapping()
    assert type(recipe).from_mapping(recipe.to_mapping()) == recipe


def test_the_authors_settings():
    drill = load_config("wmt14-transformer-drill")
    assert (drill.head.depth, drill.head.activation, drill.head.dropout) == (2, "sigmoid", 0)
    adam = drill.optimizer
    assert (adam.accumulate_steps, adam.warmup_steps, adam.beta_2) == (2, 8000, 0.998)
    # OpenNMT's `learning_rate` is a factor of Noam's schedule.
    assert adam.learning_rate == pytest.approx(2 / (512 * 8000) ** 0.5, rel=1e-3)
    for corpus, batch, rate, tuned in (("ptb", 12, 20, 25), ("wikitext2", 15, 15, 20)):
        for suffix, expected in (("", rate), ("-finetune", tuned)):
            mixture = load_config(f"{corpus}-awd-lstm-mos{suffix}")
            assert (mixture.data.batch_size, mixture.optimizer.learning_rate) == (batch, expected)


def test_the_promised_recipes_are_there():
    for corpus in ("wikitext2-awd-lstm", "ptb-awd-lstm", "small"):
        for head in ("tied", "softmax", "drill", "mos", "kerbs", "drill-kerbs"):
            assert load_config(f"{corpus}-{head}").head.kind == head
    for head in ("bilinear", "dual", "described"):
        assert load_config(f"small-{head}").head.kind == head
    for corpus in ("ptb-gru", "small-gru"):
        for head in ("softmax", "mos", "kerbs"):
            config = load_config(f"{corpus}-{head}")
            assert (config.backbone.kind, config.head.kind) == ("gru", head)


def test_toml_round_trip_with_awkward_text(tmp_path):
    config = LanguageModelConfig(description='quotes " and \\ and é \x7f\0').replace(
        {"samples.prompts": ["", 'a "b"', "\n"], "optimizer.weight_decay": 1e-12}
    )
    (tmp_path / "a.toml").write_text(config.to_toml(), encoding="utf-8")
    assert load_config(tmp_path / "a.toml") == config


def test_what_a_file_leaves_out_is_default(tmp_path):
    (tmp_path / "a.toml").write_text("[head]\nkind = 'drill'\n")
    config = load_config(tmp_path / "a.toml")
    assert config == LanguageModelConfig().replace({"head.kind": "drill"})


@pytest.mark.parametrize(
    "name, text, value",
    [
        ("head.depth", "4", 4),
        ("optimizer.learning_rate", "30", 30.0),
        ("optimizer.learning_rate", "1e-3", 1e-3),
        ("data.variable_length", "false", False),
        ("data.tokenizer", "whitespace", "whitespace"),
        ("samples.prompts", "the cat", ("the cat",)),
    ],
)
def test_text_is_converted(name, text, value):
    section, key = name.split(".")
    got = getattr(getattr(LanguageModelConfig().replace({name: text}), section), key)
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("head.dept", 4, "unknown option 'head.dept'; did you mean 'head.depth'?"),
        ("depth", 4, "did you mean 'head.depth'?"),
        ("head.depth", "four", "head.depth must be a whole number"),
        ("head.depth", 1.5, "head.depth must be a whole number"),
        ("head.depth", True, "head.depth must be a whole number"),
        ("head.depth", 0, "head.depth must be at least 1. Received: 0"),
        ("head.dropout", 1.0, "head.dropout must be less than 1. Received: 1.0"),
        ("head.dropout", "nan", "head.dropout must be a number"),
        ("optimizer.learning_rate", 10**400, "optimizer.learning_rate must be a number"),
        ("head.kind", "dril", "head.kind cannot be 'dril'; did you mean 'drill'?"),
        ("head.kind", "kerb", "head.kind cannot be 'kerb'; did you mean 'kerbs'?"),
        ("head.num_mixtures", 0, "head.num_mixtures must be at least 1. Received: 0"),
        ("senses.per_word", 0.5, "senses.per_word must be at least 1. Received: 0.5"),
        ("senses.threshold", 0.1, "senses.threshold must be at most 0. Received: 0.1"),
        ("senses.ratio", 0, "senses.ratio must be greater than 0. Received: 0.0"),
        ("senses.interval", 0, "senses.interval must be at least 1. Received: 0"),
        ("senses.policy", "rank", "senses.policy cannot be 'rank'; did you mean 'ranking'?"),
        ("data.variable_length", "perhaps", "data.variable_length must be true or false"),
        ("data.path", 3, "data.path must be text"),
        ("head.activation", "rellu", "head.activation cannot be 'rellu'; did you mean"),
        ("training.seed", 2**32, "training.seed must be at most 4294967295"),
        ("samples.seed", -1, "samples.seed must be at least 0. Received: -1"),
        ("samples.temperature", 1e39, "samples.temperature must be at most 1e+30. Received: 1e+39"),
        ("samples.temperature", 0, "samples.temperature must be at least 1e-30"),
        ("samples.p", 0, "samples.p must be greater than 0"),
        ("samples.p", 1.5, "samples.p must be at most 1. Received: 1.5"),
        ("optimizer.schedule", "cosin", "did you mean 'cosine'?"),
        ("optimizer.validation_decay", 0, "optimizer.validation_decay must be greater than 0"),
        ("training.keep_checkpoints", 0, "training.keep_checkpoints must be at least 1"),
        ("samples.prompts", [1], "samples.prompts must be a list of texts"),
    ],
)
def test_wrong_values_are_refused(name, value, message):
    with pytest.raises(ConfigError, match=r"^(option|unknown)") as error:
        LanguageModelConfig().replace({name: value})
    assert message in str(error.value)


@pytest.mark.parametrize(
    "recipe, values, message",
    [
        ("small-kerbs", {"senses.per_word": 5}, "from senses.min_senses = 1 to senses.max_senses"),
        ("small-kerbs", {"senses.min_senses": 4}, "senses.per_word must be from"),
        ("small-kerbs", {"senses.min_senses": 5}, "senses.max_senses must be at least"),
        ("small-kerbs", {"head.kind": "drill-kerbs"}, "senses.weighting must be 'usage'"),
        ("small-tied", {"backbone.output_dim": 64}, "must be 0 or backbone.embedding_dim = 128"),
        ("small-kerbs", {"backbone.output_dim": 64}, "with head.kind = 'kerbs'. Received: 64"),
        ("small-mos", {"head.context_dim": 7}, "must be 0 or backbone.embedding_dim = 128"),
        ("small-tied", {"training.keep_checkpoints": 3}, "at most training.keep_checkpoints = 3"),
        ("ptb-awd-lstm-tied", {"training.average_checkpoints": 2}, "averages the weights itself"),
        ("small-kerbs", {"training.average_checkpoints": 2}, "with senses.dynamic = true"),
        ("small-tied", {"data.max_vocabulary": 2}, "must be 0 or at least 3"),
        (PAIRS, {"backbone.input_feeding": True, "backbone.attention": "none"}, "must be false"),
        (PAIRS, {"backbone.reverse_source": True}, "false with backbone.bidirectional = true"),
        (PAIRS, {"backbone.source_end_last": True}, "with backbone.reverse_source = false"),
        (PAIRS, {"backbone.shared_value": True}, "with backbone.attention = 'general'"),
        (PAIRS, {"backbone.attention_layers": 2}, "1 with backbone.attention = 'general'"),
        (
            PAIRS,
            {"sampling.one_position": True, "sampling.loss_positions": 0.5},
            "must be 1 with sampling.one_position = true",
        ),
    ],
)
def test_contradictions_are_refused(recipe, values, message):
    with pytest.raises(ConfigError, match=r"^option") as error:
        load_config(recipe).replace(values)
    assert message in str(error.value)


def test_every_activation_is_one():
    for name in LanguageModelConfig.options()["head.activation"].metadata["choices"]:
        assert keras.activations.get(name)(keras.ops.ones((3, 5))).shape == (3, 5), name


def test_what_does_not_count_contradicts_nothing():
    config = load_config("small-tied").replace({"senses.min_senses": 5, "head.context_dim": 7})
    assert config.head.shares_embedding and not config.head.has_senses
    for recipe in ("small-mos", "small-bilinear", "small-softmax"):
        load_config(recipe).replace({"backbone.output_dim": 64})
    load_config("small-kerbs").replace({"backbone.output_dim": 64, "head.tied": False})


@pytest.mark.parametrize(
    "text, message",
    [
        ("[heads]\nkind = 'drill'", "unknown section [heads]; did you mean 'head'?"),
        ("head = 3", "head must be a section [head]. Received: head = 3"),
        ("[head\n", "is not a TOML file"),
        ("[head]\ndepth = 'x'", "option head.depth must be a whole number"),
    ],
)
def test_wrong_files_are_refused(tmp_path, text, message):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(ConfigError) as error:
        load_config(tmp_path / "a.toml")
    assert message in str(error.value) and "a.toml" in str(error.value)


def test_every_option_says_what_it_does():
    for name, field in LanguageModelConfig.options().items():
        assert field.metadata["comment"], name


@pytest.mark.parametrize(
    "text", ["task = []", "x = " + "9" * 5000, "x = " + "[" * 3000, "description = 1979-05-27"]
)
def test_odd_files_are_refused_with_their_name(text, tmp_path):
    (tmp_path / "odd.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"odd\.toml"):
        load_config(tmp_path / "odd.toml")


def test_strategies_are_those_of_distribute():
    assert check_options.STRATEGIES == STRATEGIES


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"training.strategy": "parameter-server"},
            "'multi-worker', which keeps all variables on each",
        ),
        ({"training.strategy": "miror"}, "did you mean 'mirrored'?"),
        (
            {"training.strategy": "mirrored", "optimizer.accumulate_steps": 2},
            "accumulate_steps must be 1 with training.strategy",
        ),
    ],
)
def test_strategies_that_cannot_train(changes, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_config("small-tied").replace(changes)
