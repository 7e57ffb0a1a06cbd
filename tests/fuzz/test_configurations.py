"""Any bytes in the place of what runs and pipelines keep of themselves."""

import json
import shutil

from hypothesis import strategies as st

from keras_drill.export.served_versions import ServedVersions
from keras_drill.workbench.tasks.errors import ConfigError, RunError
from keras_drill.workbench.tasks.load_config import load_config, recipe_text
from keras_drill.workbench.tasks.sequence_to_sequence.run_vocabulary import _load_tokenizer
from keras_drill.workbench.training.checkpoints import CheckpointStore
from keras_drill.workbench.training.list_runs import list_runs, runs_table
from keras_drill.workbench.training.run_folder import RunFolder, read_history
from pipelines.components.schema import Schema
from pipelines.engine.artifact_store import ArtifactStore
from tests.fuzz.damage import CHANGES, JSON, TEXTS, change, clear_errors, replace_inside
from tests.fuzz.fuzzed import fuzzed

_NAMES = ("task", "description", "head", "data.path", "head.kind", "training.epochs", "a.b",
          "samples.prompts", "head.depth", "optimizer.learning_rate", "[data]\nx", "é")  # fmt: skip
_VALUES = [
    *("1", "-1", "1e999", "nan", "-inf", "[]", "[[1]]", "{}", "true", "1979-05-27", '["a", 1]'),
    *('"x"', '"\\u0000"', '"\\u007f"', '"a\\nb"', '"\\U0010FFFF"', '"\\uD800"', '"9e999"'),
    *('"translation"', '"dialog"', "0x7fffffffffffffff", "9" * 400, "9" * 5000, "[" * 3000),
]
RECIPES = [recipe_text(name).encode() for name in ("small-drill", "small-translation-kerbs")]
CONFIGURATIONS = st.one_of(
    TEXTS,
    st.builds(
        lambda name, value: f"{name} = {value}\n".encode(),
        st.sampled_from(_NAMES),
        st.sampled_from(_VALUES),
    ),
    st.builds(change, st.sampled_from(RECIPES), CHANGES),
)


@fuzzed(150, content=CONFIGURATIONS)
def test_configurations(folder, content):
    path = folder / "config.toml"
    path.write_bytes(content)
    config = None
    with clear_errors(ConfigError):
        config = load_config(path)
    if config is not None:
        path.write_text(config.to_toml(), encoding="utf-8")
        assert load_config(path) == config


HISTORY = b"epoch,loss,seconds\n1,2.0,7\n2,nan,7\n"


@fuzzed(50, content=TEXTS | st.builds(change, st.just(HISTORY), CHANGES))
def test_histories(folder, content):
    path = folder / "history.csv"
    path.write_bytes(content)
    with clear_errors(RunError):
        history = read_history(path)
        assert len({len(values) for values in history.values()}) <= 1


STATE = {"training": {"epoch": 1, "batch": 0, "step": 2, "epoch_seconds": 0.0, "best_epoch": 1,
                      "best_loss": 2.0, "history": [{"val_perplexity": 7.0}]}}  # fmt: skip


def damaged_json(document, number, value, changes):
    """The bytes of a document with another value in it, or with damage."""
    changed = replace_inside(json.loads(json.dumps(document)), number, value)
    content = json.dumps(changed).encode()
    return change(content, changes) if changes else content


DAMAGE = {"number": st.integers(0, 99), "value": JSON, "changes": st.none() | CHANGES}


@fuzzed(40, which=st.booleans(), **DAMAGE)
def test_lists_of_runs(folder, which, number, value, changes):
    run = RunFolder(folder / "run")
    shutil.rmtree(run.path, ignore_errors=True)
    run.path.mkdir()
    run.config_file.write_bytes(RECIPES[0])
    run.results_file.write_text(json.dumps({"test_perplexity": 7.5}))
    CheckpointStore(run.checkpoints).save(2, {}, STATE)
    (state,) = run.checkpoints.glob("*/state.json")
    path = state if which else run.results_file
    path.write_bytes(damaged_json(json.loads(path.read_text()), number, value, changes))
    (listed,) = list_runs(folder)
    assert listed.state in ("damaged", "interrupted")
    runs_table([listed])


TOKENIZERS = {
    "words": {"lowercase": True, "normalization": "NFKC"},
    "wordpiece": {"pieces": ["the", "##a"], "symbols": ["__eou__"]},
    "whitespace": {
        "preprocessing": [
            {
                "module": "keras_drill.data.preprocessing",
                "class_name": "Lowercase",
                "config": {},
                "registered_name": "keras_drill>Lowercase",
            }
        ],
        "tokenizer": {
            "module": "keras_drill.data.whitespace_tokenizer",
            "class_name": "WhitespaceTokenizer",
            "config": {"tidy": False},
            "registered_name": "keras_drill>WhitespaceTokenizer",
        },
    },
}


@fuzzed(50, kind=st.sampled_from(sorted(TOKENIZERS)), **DAMAGE)
def test_tokenizer_files(folder, kind, number, value, changes):
    path = folder / "tokenizer.json"
    path.write_bytes(damaged_json(TOKENIZERS[kind], number, value, changes))
    with clear_errors(RunError):
        _load_tokenizer(path, kind).tokenize("the cat")


LINEAGE = {"made_at": "2026-01-31", "facts": {}, "files": {"a": {"bytes": 1}}, "content": "0"}


@fuzzed(40, **DAMAGE)
def test_artifacts(folder, number, value, changes):
    store = ArtifactStore(folder)
    artifact = folder / "artifacts" / "examples" / "0"
    artifact.mkdir(parents=True, exist_ok=True)
    (artifact / "a").write_bytes(b"a")
    (artifact / "lineage.json").write_bytes(damaged_json(LINEAGE, number, value, changes))
    for found in store.all("examples"):
        assert found.content is not None and found.facts is not None


SCHEMA = {"span": 1, "columns": {"text": {
    "scripts": ["LATIN"], "max_other_scripts": 0.1, "max_length": 7, "max_empty": 0.1,
    "max_duplicates": 0.5, "max_control_characters": 0, "max_unseen": 0.1, "max_in_train": 0.2,
    "max_drift": 0.3}}}  # fmt: skip


@fuzzed(40, **DAMAGE)
def test_schemas(folder, number, value, changes):
    path = folder / "schema.json"
    path.write_bytes(damaged_json(SCHEMA, number, value, changes))
    with clear_errors(ConfigError):
        Schema.load(path)


@fuzzed(30, **DAMAGE)
def test_lineages_of_served_models(folder, number, value, changes):
    extra = folder / ".7.rolled-back" / "assets.extra"
    extra.mkdir(parents=True, exist_ok=True)
    (extra / "lineage.json").write_bytes(damaged_json({"model": "a"}, number, value, changes))
    with clear_errors(ValueError):
        ServedVersions(folder).was_rolled_back("a")
