"""Seconds of TFX's components over the same text, in TFX's own environment.

    .venv-tfx/bin/python -m benchmarks.tfx_pipeline --data wikitext-2/

`make test-tfx` sets the environment up. Examples, statistics, schema, anomalies and words are made
by TFX's standard components on Beam's direct runner, as `python -m pipelines.tfx` makes them; the
seconds are those between the beginning and the end that TFX's metadata know of each component.
`benchmarks.pipeline --tfx PYTHON` puts them beside the local ones.
"""

import argparse
import tempfile
from pathlib import Path

import ml_metadata as mlmd
from tfx import v1 as tfx

from keras_drill.workbench.tasks.language_model.config import LanguageModelConfig
from pipelines.tfx.make_pipeline import data_components
from pipelines.tfx.settings import Settings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="a folder with train, valid and test text")
    parser.add_argument("--tokenizer", default="whitespace", choices=("whitespace", "words"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, seconds in run(args.data, args.tokenizer, Path(folder)).items():
            print(name, seconds)


def run(data: str, tokenizer: str, folder: Path) -> dict[str, float]:
    """Seconds by component."""
    connection = tfx.orchestration.metadata.sqlite_metadata_connection_config(
        str(folder / "metadata.db")
    )
    config = LanguageModelConfig().replace({"data.tokenizer": tokenizer})
    settings = Settings.make(config, str(Path(data).absolute()), str(folder / "shared"))
    tfx.orchestration.LocalDagRunner().run(
        tfx.dsl.Pipeline(
            pipeline_name="timed",
            pipeline_root=str(folder),
            components=data_components(settings, ("train", "valid", "test")),
            metadata_connection_config=connection,
            beam_pipeline_args=["--direct_running_mode=in_memory"],
        )
    )
    store = mlmd.MetadataStore(connection)
    names = {kind.id: kind.name.rpartition(".")[2] for kind in store.get_execution_types()}
    return {
        names[one.type_id]: (one.last_update_time_since_epoch - one.create_time_since_epoch) / 1e3
        for one in store.get_executions()
    }


if __name__ == "__main__":
    main()
