"""Writes the reference pages: the API from docstrings, commands from their parsers,
options from their definitions.

    python -m docs.write_reference

The pages go to `docs/reference/generated/`, which git does not keep. `make docs` calls this.
"""

import argparse
import dataclasses
import importlib
import inspect
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from docs.docstring_to_markdown import docstring_to_markdown

ROOT = Path(__file__).parents[1]
GENERATED = ROOT / "docs" / "reference" / "generated"

# Pages in the order in which users look for them, each with its module and a sentence.
API_PAGES = {
    "models": ("keras_drill.models", "Backbones, which map tokens to hidden states."),
    "data": ("keras_drill.data", "Text files, tokenizers, vocabularies and batches (TensorFlow)."),
    "decoding": ("keras_drill.decoding", "Samplers, beam search and constraints."),
    "metrics": ("keras_drill.metrics", "Metrics of models and of texts."),
    "callbacks": ("keras_drill.callbacks", "Callbacks for `fit`."),
    "export": ("keras_drill.export", "SavedModels with text in and text out (TensorFlow)."),
    "distribute": ("keras_drill.distribute", "Strategies for many devices (TensorFlow)."),
    "layers": ("keras_drill.layers", "Recurrent layers, attention, Transformer layers, dropout."),
    "ops": ("keras_drill.ops", "The fused losses as functions."),
    "optimizers": ("keras_drill.optimizers", "Schedules, and gradients of embedding tables."),
    "label-encoders": ("keras_drill.label_encoders", "Layers that compute labels from embeddings."),
    "scores": ("keras_drill.scores", "Scores of a hidden state and a label."),
    "compositions": ("keras_drill.compositions", "Layers that turn scores into probabilities."),
    "senses": ("keras_drill.senses", "Words with several embeddings (senses)."),
    "policies": ("keras_drill.senses.policies", "Policies that move senses between words."),
}
_TOP = "keras_drill"
_FIRST_NAMES = (
    "LanguageModel",
    "SequenceToSequence",
    "Distiller",
    "TiedOutput",
    "SoftmaxOutput",
    "DrillOutput",
    "BilinearOutput",
    "DualNonlinearOutput",
    "KernelizedBayesianSoftmax",
    "MixtureOfSoftmaxes",
    "OutputLayer",
)


def public_names(module_name: str) -> list[str]:
    """Public classes and functions of a module, those that users look for first."""
    module = importlib.import_module(module_name)
    names = [name for name in module.__all__ if not inspect.ismodule(getattr(module, name))]
    first = [name for name in _FIRST_NAMES if name in names]
    return first + [name for name in names if name not in first]


def write_api_page(title: str, module_name: str, purpose: str) -> str:
    parts = [f"# {title}", purpose]
    for name in public_names(module_name):
        parts += _describe(f"{module_name}.{name}", getattr(sys.modules[module_name], name))
    return "\n\n".join(parts) + "\n"


def _describe(full_name: str, thing: Any) -> Iterator[str]:
    yield f"## `{full_name.rpartition('.')[2]}`"
    if not callable(thing):
        yield f"`{full_name} = {thing!r}`"
        return
    yield f"```python\n{full_name}{_signature(thing)}\n```"
    yield docstring_to_markdown(inspect.getdoc(thing) or "")
    if not inspect.isclass(thing):
        return
    for name, member in sorted(vars(thing).items()):
        function = getattr(member, "__func__", member)
        if name.startswith("_") or not inspect.isfunction(function) or not function.__doc__:
            continue
        yield f"### `{thing.__name__}.{name}`"
        yield f"```python\n{name}{_signature(getattr(thing, name))}\n```"
        yield docstring_to_markdown(inspect.getdoc(function) or "")


def _signature(thing: Any) -> str:
    """Names and defaults; types stand in the docstring."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return "(...)"
    parameters = [
        p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name != "self"
    ]
    text = str(signature.replace(parameters=parameters, return_annotation=signature.empty))
    text = re.sub(r"<(?:function|class) '?([\w.]+).*?>", r"\1", text)
    if len(text) <= 70:
        return text
    return "(\n    " + ",\n    ".join(_split_parameters(text[1:-1])) + ",\n)"


def _split_parameters(text: str) -> list[str]:
    """Splits at commas outside of brackets and quotes.

    >>> _split_parameters("a, b=(1, 2), c='x, y'")
    ['a', 'b=(1, 2)', "c='x, y'"]
    """
    return [m.strip() for m in re.findall(r"(?:\([^)]*\)|\[[^\]]*\]|'[^']*'|[^,])+", text)]


def write_commands_page() -> str:
    from keras_drill.workbench.cli.main import make_parser

    os.environ["COLUMNS"] = "100"
    _, commands = make_parser()
    parts = ["# Commands and arguments", "Every command of `keras-drill`, from its parser."]
    for name, parser in commands.items():
        parts += [f"## `keras-drill {name}`", parser.description or ""]
        parts.append(f"```text\n{parser.format_usage().removeprefix('usage: ').strip()}\n```")
        rows = [
            f"| {_cell(_invocation(action))} | {_cell(_help(parser, action))} |"
            for action in parser._actions
            if action.help is not argparse.SUPPRESS
        ]
        parts.append("\n".join(["| argument | meaning |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _invocation(action: argparse.Action) -> str:
    value = action.metavar or (action.dest.upper() if action.nargs != 0 else "")
    value = " ".join(value) if isinstance(value, tuple) else value
    if action.choices and not action.metavar:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    names = action.option_strings or [""]
    return ", ".join(f"`{f'{name} {value}'.strip()}`" for name in names)


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    formatter = parser._get_formatter()
    return formatter._expand_help(action) if action.help else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def write_options_page() -> str:
    from keras_drill.workbench.tasks.load_config import CONFIGS

    parts = [
        "# Options of recipes",
        "Every option of a training run: `--section.key VALUE` on the command line of "
        "`keras-drill train`, or `key = value` in a recipe. "
        "Options marked with * may change when a run is resumed.",
    ]
    told: dict[str, str] = {}
    for config in CONFIGS:
        parts.append(f"## Task `{config.task}`")
        for section in dataclasses.fields(config):
            if not dataclasses.is_dataclass(section.type):
                continue
            name = section.type.__name__
            if name in told:
                parts.append(f"`[{section.name}]`: as in the task `{told[name]}`.")
                continue
            told[name] = config.task
            parts += [f"### `[{section.name}]` of `{config.task}`", _tabulate_options(section)]
    return "\n\n".join(parts) + "\n"


def _tabulate_options(section: dataclasses.Field) -> str:
    rows = []
    for field in dataclasses.fields(section.type):  # type: ignore[arg-type]
        default = list(field.default) if isinstance(field.default, tuple) else field.default
        shown = str(default).lower() if isinstance(default, bool) else repr(default)
        mark = " *" if field.metadata["may_change"] else ""
        comment = _cell(field.metadata["comment"]).replace("<", "\\<")
        rows.append(f"| `{section.name}.{field.name}`{mark} | `{_cell(shown)}` | {comment} |")
    return "\n".join(["| option | default | meaning |", "|---|---|---|", *rows])


def write_recipes_page() -> str:
    from keras_drill.workbench.tasks.load_config import load_config, recipe_names

    rows = []
    for name in recipe_names():
        config = load_config(name)
        cells = (config.description, config.origin, config.result)
        rows.append(f"| `{name}` | " + " | ".join(map(_cell, cells)) + " |")
    purpose = (
        "Every recipe with the origin of its settings, and its result if it was trained with this "
        "package."
    )
    table = ["| recipe | content | settings | result |", "|---|---|---|---|", *rows]
    return "\n\n".join(["# List of recipes", purpose, "\n".join(table)]) + "\n"


def write_pages() -> dict[str, str]:
    """All generated pages by their names."""
    pages = {
        "api": write_api_page("Output layers and models", _TOP, "What `import keras_drill` offers.")
    }
    for name, (module, purpose) in API_PAGES.items():
        pages[f"api-{name}"] = write_api_page(f"`{module}`", module, purpose)
    pages["commands"] = write_commands_page()
    pages["options"] = write_options_page()
    pages["recipes"] = write_recipes_page()
    entries = "\n".join(pages)
    pages["index"] = (
        "# API, commands, options and recipes\n\nThese pages are made from docstrings, parsers and "
        f"definitions.\n\n```{{toctree}}\n:maxdepth: 1\n\n{entries}\n```\n"
    )
    return pages


def main(argv: Sequence[str] | None = None) -> int:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args(argv)
    GENERATED.mkdir(parents=True, exist_ok=True)
    for name, text in write_pages().items():
        (GENERATED / f"{name}.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
