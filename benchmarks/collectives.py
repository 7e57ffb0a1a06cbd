"""Reads the communication between devices from the text of a compiled JAX program."""

import math
import re
from typing import NamedTuple

KINDS = ("all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter")
_ITEM_BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2, "f64": 8,
               "s64": 8, "u64": 8}  # fmt: skip
_OPERATION = re.compile(rf"= (.+?) ({'|'.join(KINDS)})(?:-start)?\(")
_CALLED = re.compile(r"(?:body|to_apply|calls|true_computation|false_computation)=%?([\w.-]+)")


class Collective(NamedTuple):
    """One operation in which devices send each other something.

    Attributes:
        kind: One of `KINDS`.
        shapes: What each device has of it afterwards: type and sizes of each tensor.
        devices: How many devices take part with one another.
        times: How often it runs in one run of the program, or `None` where that depends on data.
        source: Where it comes from, as JAX names it.
    """

    kind: str
    shapes: list[tuple[str, tuple[int, ...]]]
    devices: int
    times: int | None
    source: str

    @property
    def num_bytes(self) -> int:
        """Bytes of it on each device, in one run of the operation."""
        return sum(_bytes(*shape) for shape in self.shapes)


def read_collectives(text: str) -> list[Collective]:
    """The collective operations between two devices or more, of `compiled.as_text()`."""
    found, callers, computation = [], {}, ""
    for line in text.splitlines():
        if line and not line[0].isspace() and line.rstrip().endswith("{"):
            computation = line.removeprefix("ENTRY ").split(" ")[0].removeprefix("%")
            continue
        trips: int | None = 1
        if " while(" in line:
            count = re.search(r'"known_trip_count":\{"n":"(\d+)"', line)
            trips = int(count[1]) if count else None
        for called in _CALLED.findall(line):
            callers.setdefault(called, []).append((computation, trips))
        operation = _OPERATION.search(line)
        if operation and _group_size(line) > 1:
            source = re.search(r'op_name="([^"]*)"', line)
            found.append((operation, _group_size(line), computation, source[1] if source else ""))
    return [
        Collective(operation[2], _shapes(operation[1]), devices, _times(where, callers), source)
        for operation, devices, where, source in found
    ]


def _shapes(text) -> list:
    sizes = re.findall(r"(\w+)\[([\d,]*)\]", text)
    return [(kind, tuple(int(n) for n in size.split(",") if n)) for kind, size in sizes]


def _bytes(kind, sizes) -> int:
    return math.prod(sizes) * _ITEM_BYTES.get(kind, 4)


def _group_size(line) -> int:
    """Devices that take part with one another, in any of the ways that XLA writes them."""
    if "source_target_pairs" in line:
        return 2
    if listed := re.search(r"replica_groups=\{\{([\d,]*)\}", line):
        return len(listed[1].split(","))
    if counted := re.search(r"replica_groups=\[\d+,(\d+)\]", line):
        return int(counted[1])
    if named := re.search(r"replica_groups=mesh\[(.*?)\][^{]*\{(.*?)\}", line):
        sizes = {axis: int(size) for axis, size in re.findall(r"'(\w+)'=(\d+)", named[1])}
        parts = re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", named[2])
        return math.prod(int(part or sizes[axis]) for axis, part in parts)
    raise ValueError(f"who takes part is written in a way unknown here. Received: {line}")


def _times(computation, callers) -> int | None:
    if computation not in callers:
        return 1
    total = 0
    for caller, trips in callers[computation]:
        times = _times(caller, callers)
        if times is None or trips is None:
            return None
        total += times * trips
    return total
