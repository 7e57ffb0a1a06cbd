"""Measures the time of TFX's components on the same text, in TFX's own environment.

    .venv-tfx/bin/python -m benchmarks.tfx_pipeline --data wikitext-2/

`make test-tfx` creates the environment. TFX's standard components make examples, statistics,
schema, anomalies and vocabulary on Beam's direct runner, as in `python -m pipelines.tfx`. The time
of a component is the time between its start and end in TFX's metadata.
`benchmarks.pipeline --tfx PYTHON` shows the results beside those of this package.
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
