"""The table of an execution, for the terminal."""

from collections.abc import Mapping
from typing import Any

from keras_drill.workbench.report.page.formatting import MISSING, format_duration, text_table
from pipelines.engine.execution import Execution


def table_of(execution: Execution) -> str:
    """Formats an execution as a table with the state and the facts of each component."""
    rows = [("component", "state", "what", "time")]
    for step in execution.steps:
        seconds = MISSING if step.seconds is None else format_duration(step.seconds)
        rows.append((step.component, step.state, describe_facts(step.facts) or MISSING, seconds))
    return text_table(rows, left=3)


def describe_facts(facts: Mapping[str, Any]) -> str:
    """Formats facts in one line. Values other than text and numbers are skipped.

    >>> describe_facts({"lines": 36718, "share": 0.25, "worst": [3], "verdict": "good"})
    'lines 36,718, share 0.25, verdict good'
    """
    return ", ".join(
        f"{name} {value:,}" if isinstance(value, int | float) else f"{name} {value}"
        for name, value in facts.items()
        if isinstance(value, str | int | float)
    )
