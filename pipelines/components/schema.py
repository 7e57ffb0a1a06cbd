"""Schema: expectations about a corpus, in a JSON file that the user may edit."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_drill.workbench.tasks.config.option import suggest
from keras_drill.workbench.tasks.errors import ConfigError

SCHEMA = "schema.json"


@dataclasses.dataclass(frozen=True)
class ColumnSchema:
    """Expectations about the lines of a column. Shares are from 0 to 1.

    Args:
        scripts: Names of the expected scripts, such as "Latin".
        max_other_scripts: Maximum share of letters in other scripts.
        max_length: Maximum number of tokens in a line.
        max_empty: Maximum share of empty lines.
        max_duplicates: Maximum share of lines that repeat an earlier line.
        max_control_characters: Maximum number of control and replacement characters.
        max_unseen: Maximum share of the tokens of another split that are not in the training text.
        max_in_train: Maximum share of the lines of another split that are also in the training
            text.
        max_drift: Maximum distance between the token frequencies of this span and of the previous
            one; 0 means equal, 1 means no common tokens.
    """

    scripts: tuple[str, ...]
    max_other_scripts: float
    max_length: int
    max_empty: float
    max_duplicates: float
    max_control_characters: int
    max_unseen: float
    max_in_train: float
    max_drift: float


@dataclasses.dataclass(frozen=True)
class Schema:
    """Expectations about a corpus.

    Args:
        columns: Expectations about each column, by name. The corpus must have exactly these
            columns.
        span: Number of the span from which the schema was inferred; `None` for other corpora.
    """

    columns: Mapping[str, ColumnSchema]
    span: int | None = None

    def save(self, path: Path) -> None:
        """Writes the schema to a JSON file."""
        told = {
            "span": self.span,
            "columns": {name: dataclasses.asdict(each) for name, each in self.columns.items()},
        }
        path.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Schema":
        """Reads a file that `save` wrote, and that the user may have edited.

        Raises:
            ConfigError: The file is not a valid schema.
        """
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path} is not UTF-8 text ({error.reason})") from None
        except RecursionError:
            raise ConfigError(f"{path} is not a schema: its JSON is nested too deeply") from None
        except json.JSONDecodeError as error:
            raise ConfigError(f"{path}, line {error.lineno}: expected JSON ({error.msg})") from None
        if not isinstance(told, dict) or not isinstance(told.get("columns"), dict):
            raise ConfigError(
                f'{path}: expected an object with the key "columns", whose value is an object'
            )
        columns = {name: _column(each, name, path) for name, each in told["columns"].items()}
        return cls(columns, told.get("span"))


def _column(told: Any, column: str, path: Path) -> ColumnSchema:
    fields = {field.name: field.type for field in dataclasses.fields(ColumnSchema)}
    where = f"{path}: column {column!r}"
    if not isinstance(told, dict):
        raise ConfigError(f"{where} must be an object. Received: {told!r}")
    for name in [*told, *fields]:
        if name not in fields:
            raise ConfigError(f"{where}: unknown field {name!r}{suggest(name, fields)}")
        if name not in told:
            raise ConfigError(
                f"{where} must have the fields {sorted(fields)}. Received: {sorted(told)}, "
                f"without {name!r}"
            )
    for name, value in told.items():
        if name == "scripts":
            good = isinstance(value, list) and all(isinstance(each, str) for each in value)
        else:
            good = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
        if not good:
            kind = "a list of names" if name == "scripts" else "a number of at least 0"
            raise ConfigError(f"{where}: {name} must be {kind}. Received: {json.dumps(value)}")
    return ColumnSchema(**{**told, "scripts": tuple(told["scripts"])})
