"""The section of the page about anomalies."""

from collections.abc import Sequence
from xml.etree import ElementTree

from keras_drill.workbench.report.page.elements import element, table
from pipelines.components.anomaly import Anomaly


def anomalies_section(anomalies: Sequence[Anomaly]) -> ElementTree.Element:
    """Makes a table of anomalies, or a sentence if there are none."""
    if not anomalies:
        content = element("p", "The examples match the schema.")
    else:
        rows: list[list[ElementTree.Element | str]] = [
            [each.message, each.severity, element("code", each.expectation)] for each in anomalies
        ]
        content = table("Anomalies", ["what", "severity", "expectation"], rows)
    return element("section", element("h2", "Anomalies"), content, class_="facts")
