"""Selects the model from which a warm start continues."""

from collections.abc import Mapping

from pipelines.components.verdict import Verdict
from pipelines.engine.artifact_store import Artifact, ArtifactStore

WARM_START = "warm_start"


def blessed_before(store: ArtifactStore, made: Mapping[str, Artifact]) -> dict[str, Artifact]:
    """Finds the newest blessed model that is older than the current examples.

    Models of later executions are ignored. So the same command, run again, starts from the same
    model and finds the artifact that it made before.

    Args:
        store: The store in which to search.
        made: The artifacts of this execution so far, by name.
    """
    came = made["examples"].lineage["execution"]
    models = {each.content: each for each in store.all("model")}
    blessed = []
    for verdict in store.all("verdict"):
        model = models.get(verdict.lineage["inputs"]["model"]["content"])
        if model is None or not Verdict.load(verdict.path).blessed:
            continue
        if model.lineage["execution"] < came and verdict.lineage["execution"] < came:
            blessed.append(model)
    if not blessed:
        return {}
    return {WARM_START: max(blessed, key=lambda model: model.lineage["execution"])}
