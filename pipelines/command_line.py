"""The command line of the pipelines, which also accepts the options of `keras-drill train`."""

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_drill.workbench.cli.argument_parser import ArgumentParser, take_overrides
from keras_drill.workbench.cli.arguments import folder_name, some_path
from keras_drill.workbench.cli.exit_status import exit_status
from keras_drill.workbench.cli.streams import (
    import_tensorflow,
    prepare_interrupts,
    prepare_streams,
    prepare_warnings,
)
from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.config.option import check_value
from keras_drill.workbench.tasks.errors import ConfigError
from keras_drill.workbench.tasks.load_config import config_class, load_config
from pipelines.options import SECTIONS, PipelineOptions

PROGRAM = "pipelines"


def main(task: str, recipe: str, argv: Sequence[str] | None = None) -> int:
    """Runs a pipeline.

    Args:
        task: Name of the task.
        recipe: The default recipe.
        argv: The arguments of the command line; `None` for those of the process. With `None`, the
            function also prepares the standard streams and handles Ctrl-C.

    Returns:
        The exit status; see `exit_status`.
    """
    interrupts: list[int] = []
    if argv is None:
        interrupts = prepare_interrupts()
        prepare_streams()
        prepare_warnings(PROGRAM)
    words = list(sys.argv[1:] if argv is None else argv)
    run = _Command(task, recipe, words)
    return exit_status(run, PROGRAM, "--traceback" in words, interrupts)


class _Command:
    """A callable that runs one command line."""

    def __init__(self, task: str, recipe: str, words: list[str]):
        self.module = f"pipelines.{task.replace('-', '_')}"
        self.task = task
        self.recipe = recipe
        self.words = words

    def __call__(self) -> int:
        config_options = config_class(self.task).options()
        words, overrides = take_overrides(self.words, {**config_options, **SECTIONS})
        args = self._parser().parse_words(words)
        config = self._config(args, {k: v for k, v in overrides.items() if k in config_options})
        given = {k: v for k, v in overrides.items() if k in SECTIONS}
        options = PipelineOptions().replace(
            {name: check_value(name, SECTIONS[name], value) for name, value in given.items()}
        )
        if args.rollback:
            return self._roll_back(args, options)
        if args.data is None:
            raise ConfigError("give the text to train on with --data PATH")
        folder = Path(args.folder or Path("runs") / "pipelines" / (args.serve_as or self.task))

        import_tensorflow()
        from keras_drill.workbench.training.train_run import prepare_process
        from pipelines.engine.artifact_store import Artifact, ArtifactStore
        from pipelines.engine.execution import Execution
        from pipelines.engine.execution_table import table_of
        from pipelines.engine.run_pipeline import run_pipeline
        from pipelines.make_pipeline import PipelineArguments, make_pipeline
        from pipelines.page.write_execution_page import write_execution_page

        prepare_process(config)
        arguments = PipelineArguments(
            config,
            options,
            args.data,
            span=args.span,
            schema=args.schema,
            serve_as=args.serve_as,
            warm_start=args.warm_start,
        )
        store, components = ArtifactStore(folder), make_pipeline(arguments)

        def report(execution: Execution, artifacts: Mapping[str, Artifact]) -> None:
            print(table_of(execution))
            page = write_execution_page(execution, store, components, artifacts)
            print(f"report: {page}", flush=True)

        run_pipeline(
            components,
            store,
            command=f"python -m {self.module} {shlex.join(self.words)}",
            until=args.until,
            force=args.force,
            on_end=report,
        )
        return 0

    def _roll_back(self, args: argparse.Namespace, options: PipelineOptions) -> int:
        if args.serve_as is None:
            raise ConfigError("give the model to roll back with --serve-as NAME")

        import_tensorflow()
        from keras_drill.export.served_versions import ServedVersions

        directory = Path(options.pusher.directory) / args.serve_as
        served = ServedVersions(directory)
        if served.newest() is None:
            raise ConfigError(
                f"--serve-as must name a model with a version in {options.pusher.directory}. "
                f"Received: {args.serve_as}"
            )
        with served.lock():
            version, newest = served.roll_back(), served.newest()
        now = "no version is left" if newest is None else f"version {newest} is served now"
        print(f"{args.serve_as}: version {version} is rolled back, {now}")
        return 0

    def _config(self, args: argparse.Namespace, overrides: Mapping[str, Any]) -> RunConfig:
        config = load_config(args.recipe or self.recipe).replace(overrides)
        if config.task != self.task:
            raise ConfigError(
                f"RECIPE must be a recipe of the task {self.task}; for this recipe run python -m "
                f"pipelines.{config.task.replace('-', '_')}. Received: {args.recipe}, a recipe of "
                f"the task {config.task}"
            )
        return config

    def _parser(self) -> ArgumentParser:
        parser = ArgumentParser(
            program=PROGRAM,
            prog=f"python -m {self.module}",
            description=(
                "Trains a model on a corpus, evaluates it and publishes it, by a sequence of\n"
                "components. Components whose inputs have not changed are skipped, so the same\n"
                "command resumes an interrupted pipeline."
            ),
            epilog=(
                "All options of the recipe and of the components can be set with --section.key\n"
                "VALUE. Options of the components:\n"
                + "\n".join(
                    f"  --{name} {field.default!r}: {field.metadata['comment']}"
                    for name, field in SECTIONS.items()
                )
            ),
        )
        parser.set_defaults(takes_options=True)
        parser.add_argument(
            "recipe", nargs="?", metavar="RECIPE|FILE.toml", help=f"default: {self.recipe}"
        )
        parser.add_argument(
            "--data",
            type=some_path,
            metavar="PATH",
            help="corpus, as for `keras-drill train --data`; for data in numbered parts (spans), "
            "{SPAN} stands for the number in the path",
        )
        parser.add_argument(
            "--span", type=int, help="number of the span; default: the largest number"
        )
        parser.add_argument(
            "--schema",
            metavar="FILE",
            help="JSON file with expectations about the data; default: inferred",
        )
        parser.add_argument(
            "--serve-as",
            metavar="NAME",
            type=folder_name,
            help="name under which the model is served; without it, the model is not served",
        )
        parser.add_argument(
            "--warm-start",
            action="store_true",
            help="start from the weights of the last model that passed the evaluation, and add new "
            "words to its vocabulary",
        )
        parser.add_argument(
            "--rollback",
            action="store_true",
            help="do not run the pipeline; withdraw the newest version of the served model",
        )
        parser.add_argument(
            "--folder", type=some_path, help="the pipeline's folder; default: runs/pipelines/NAME"
        )
        parser.add_argument("--until", metavar="COMPONENT", help="the last component to run")
        parser.add_argument(
            "--force",
            metavar="COMPONENT",
            action="append",
            default=[],
            help="run this component even if its artifact exists; may be repeated",
        )
        parser.add_argument(
            "--traceback", action="store_true", help="show the Python traceback of an error"
        )
        return parser
