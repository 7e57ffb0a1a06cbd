"""Compiles the TFX pipeline for Kubeflow Pipelines and Vertex AI. Edit this file as needed.

    python -m pipelines.tfx.kubeflow RECIPE --data /gcs/BUCKET/corpus \\
        --root gs://BUCKET/pipelines --serve-in gs://BUCKET/saved_models/news \\
        --image IMAGE --output news.json

IMAGE contains TFX 1.16 and this checkout. The containers must be able to read the path of the
corpus (Vertex AI mounts buckets under /gcs). To run Beam on Dataflow, add
`--beam=--runner=DataflowRunner --beam=--project=...`. Submit `news.json` with

    from google.cloud import aiplatform
    aiplatform.PipelineJob("news", template_path="news.json").submit()
"""

import argparse
import sys
from collections.abc import Sequence

from keras_drill.workbench.cli.argument_parser import take_overrides
from keras_drill.workbench.tasks.load_config import load_config
from pipelines.tfx.make_pipeline import Place, make_pipeline


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the specification of the pipeline."""
    from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner as kubeflow

    words, overrides = take_overrides(list(sys.argv[1:] if argv is None else argv))
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.tfx.kubeflow", description=main.__doc__
    )
    parser.add_argument("recipe", help="recipe or configuration file of any task")
    parser.add_argument("--data", required=True, help="path of the corpus in the containers")
    parser.add_argument(
        "--splits", nargs="+", default=["train", "valid", "test"], help="default: %(default)s"
    )
    parser.add_argument("--root", required=True, help="folder of the artifacts")
    parser.add_argument(
        "--serve-in", required=True, help="folder for the versions of the served model"
    )
    parser.add_argument("--name", default="keras-drill", help="default: %(default)s")
    parser.add_argument("--image", required=True, help="container image with TFX and this checkout")
    parser.add_argument(
        "--beam", action="append", default=[], help="an argument for Beam; may be repeated"
    )
    parser.add_argument("--output", required=True, help="the JSON file to write")
    args = parser.parse_args(words)
    pipeline = make_pipeline(
        load_config(args.recipe).replace(overrides),
        args.data,
        args.splits,
        Place(args.name, args.root, args.serve_in),
        beam_arguments=args.beam,
    )
    config = kubeflow.KubeflowV2DagRunnerConfig(default_image=args.image)
    kubeflow.KubeflowV2DagRunner(config, output_filename=args.output).run(pipeline)
    return 0


if __name__ == "__main__":
    sys.exit(main())
