"""Runs the TFX pipeline on this machine.

python -m pipelines.tfx RECIPE --data corpus/ --serve-as NAME
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from keras_drill.workbench.cli.argument_parser import take_overrides
from keras_drill.workbench.cli.arguments import folder_name
from keras_drill.workbench.tasks.load_config import load_config
from keras_drill.workbench.tasks.make_task import make_task
from pipelines.tfx.make_pipeline import Place, make_pipeline


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the pipeline with TFX's LocalDagRunner and Beam's direct runner."""
    from tfx import v1 as tfx

    words, overrides = take_overrides(list(sys.argv[1:] if argv is None else argv))
    parser = argparse.ArgumentParser(prog="python -m pipelines.tfx", description=main.__doc__)
    parser.add_argument("recipe", help="recipe or configuration file of any task")
    parser.add_argument("--data", required=True, help="corpus, as for `keras-drill train --data`")
    parser.add_argument(
        "--serve-as",
        required=True,
        metavar="NAME",
        type=folder_name,
        help="name under which the model is served",
    )
    parser.add_argument("--folder", help="default: runs/tfx/NAME")
    parser.add_argument("--saved-models", default="saved_models", help="default: %(default)s")
    args = parser.parse_args(words)
    folder = Path(args.folder or Path("runs") / "tfx" / args.serve_as).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    config = load_config(args.recipe).replace(overrides)
    data = str(Path(args.data).absolute())
    pipeline = make_pipeline(
        config,
        data,
        list(make_task(config).read_columns(data, cut_by_content=True)),
        Place(args.serve_as, str(folder), str(Path(args.saved_models).absolute() / args.serve_as)),
        tfx.orchestration.metadata.sqlite_metadata_connection_config(str(folder / "metadata.db")),
        beam_arguments=["--direct_running_mode=in_memory"],
    )
    tfx.orchestration.LocalDagRunner().run(pipeline)
    return 0


if __name__ == "__main__":
    sys.exit(main())
