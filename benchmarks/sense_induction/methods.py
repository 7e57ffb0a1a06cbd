"""The compared methods: one `Method` for each line of the tables."""

import dataclasses

from keras_drill.senses.policies import (
    AllocationPolicy,
    IdleSensePolicy,
    RankingPolicy,
    ThresholdPolicy,
)
from tests.senses.certain_sense_policy import CertainSensePolicy

POLICIES: dict[str, AllocationPolicy] = {
    "idle": IdleSensePolicy(),
    "ranking": RankingPolicy(0.05),
    "threshold -1": ThresholdPolicy(-1.0),
    "threshold -3": ThresholdPolicy(-3.0),
    "certain": CertainSensePolicy(),
}


@dataclasses.dataclass(frozen=True)
class Method:
    """A way to senses.

    Args:
        kind: "kerbs", "k-means", or "supervised", a logistic regression on gold senses.
        state: "mean" of the context, or at the "word".
        read: "masked", "unmasked", or "by word": unmasked and centred by word.
        whiten: Whether contexts are whitened.
        senses: Of each word: "gold", a number, or "held out", as many as contexts that are kept
            out need (`count_senses`). With a policy, of all words in the mean.
        start: Of senses: "clusters" of the word's contexts, or "random".
        variant: Of the kernel.
        policy: Key of `POLICIES`, or "" where no senses move.
        moved: As `moved_embedding` of `SenseReallocation`, or "centroids": moved senses begin at
            clusters of their new word's contexts.
        usage: As `usage_by` of `KernelizedBayesianSoftmax`.
        length: Of contexts.
        rate: Learning rate.
    """

    kind: str = "kerbs"
    state: str = "mean"
    read: str = "masked"
    whiten: bool = False
    senses: str | float = "gold"
    start: str = "clusters"
    variant: str = "paper"
    policy: str = ""
    moved: str = "keep"
    usage: str = "posterior"
    length: float = 8.0
    rate: float = 0.001

    @property
    def name(self) -> str:
        """What is not as in the others, in words; also the name of its folder of results."""
        parts = [self.kind]
        for field in dataclasses.fields(self)[1:]:
            value = getattr(self, field.name)
            if value != field.default:
                shown = {
                    "whiten": "whitened",
                    "policy": f"policy {value}",
                    "moved": f"moved {value}",
                    "usage": f"usage by {value}",
                }
                named = str(value) if isinstance(value, str) else f"{field.name} {value:g}"
                parts.append(shown.get(field.name, named))
        return ", ".join(parts)


def baseline(method: Method) -> Method:
    """What a method is held against: k-means on the same states, whitened."""
    return Method("k-means", method.state, whiten=True, senses=method.senses)


def methods() -> list[Method]:
    """All of them; the first twelve are the comparison, the others what was tried."""
    found = [
        Method(kind, "mean", whiten=whiten, senses=senses)
        for senses in ("gold", 3.0)
        for whiten in (True, False)
        for kind in ("k-means", "kerbs")
    ]
    found += [Method("k-means", "word", whiten=True), Method("kerbs", "word", whiten=True)]
    found += [Method(variant="inner_product"), Method("supervised")]
    found += [Method("supervised", "word")]
    found += [Method(kind, "word") for kind in ("k-means", "kerbs")]
    found += [Method(rate=0.01), Method(length=4.0), Method(length=16.0)]
    found += [Method(start="random", rate=0.01), Method("kerbs", "word", start="random", rate=0.01)]
    found += [Method("kerbs", "word", whiten=True, start="random", rate=0.01)]
    for state in ("word", "mean"):
        found += [
            Method(kind, state, read)
            for read in ("unmasked", "by word")
            for kind in ("k-means", "kerbs")
        ]
    random = Method(senses=2.5, start="random", rate=0.01)
    found.append(random)
    found += [dataclasses.replace(random, policy=name) for name in POLICIES if name != "certain"]
    found.append(dataclasses.replace(random, policy="idle", moved="near"))
    found += [Method(senses=2.5, policy=policy) for policy in ("", "idle", "ranking")]
    found += [
        Method(kind, whiten=whiten, senses=senses)
        for senses in ("held out", 2.0)
        for whiten in (True, False)
        for kind in ("k-means", "kerbs")
    ]
    certain = Method(senses=2.5, policy="certain")
    found += [certain, dataclasses.replace(certain, moved="near")]
    moved = [dataclasses.replace(random, policy=policy) for policy in ("idle", "ranking")]
    moved += [Method(senses=2.5, policy=policy) for policy in ("idle", "ranking", "certain")]
    found += [dataclasses.replace(method, moved="centroids") for method in moved]
    found += [
        dataclasses.replace(random, policy=policy, usage="probability")
        for policy in ("idle", "ranking", "threshold -1", "threshold -3")
    ]
    return found
