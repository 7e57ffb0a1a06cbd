"""What a checkpoint's files hold, and whether it is what was written."""

import hashlib
import json
import math
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

ARRAYS, STATE, CHECKSUMS = "arrays.npz", "state.json", "checksums.json"
HAS_CHECKSUMS = "has_checksums"  # in the state of checkpoints that are not whole without them


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file that `np.savez` wrote.

    Whatever stands in it, no pickles are read, and no memory is asked for that it does not fill.
    """
    arrays = {}
    size = path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            with archive.open(entry) as file:
                version = np.lib.format.read_magic(file)
                read_header = {
                    (1, 0): np.lib.format.read_array_header_1_0,
                    (2, 0): np.lib.format.read_array_header_2_0,
                }[version]
                shape, _, dtype = read_header(file)
                length = file.tell() + math.prod(shape) * dtype.itemsize
                if not length == entry.file_size <= size:
                    raise ValueError(f"{entry.filename} is not as long as its shape {shape} says")
            with archive.open(entry) as file:
                array = np.lib.format.read_array(file, allow_pickle=False)
                file.read(1)  # the end, where the archive's own checksum is looked at
            arrays[entry.filename.removesuffix(".npy")] = array
    return arrays


def read_state(folder: Path, step: int) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The state of a checkpoint, which is checked, and its checksums; old versions have none."""
    state = json.loads((folder / STATE).read_text(encoding="utf-8"))
    path = folder / CHECKSUMS
    if not (state.pop(HAS_CHECKSUMS, False) or path.exists()):
        return state, None
    checksums = json.loads(path.read_text(encoding="utf-8"))
    # An old version did not mark the state either.
    expected = (step, state_checksum(state)) if "step" in checksums else (None, _digest(state))
    if checksums.get("step") != expected[0]:
        raise ValueError(f"it is that of step {checksums.get('step')}")
    if checksums["state"] != expected[1]:
        raise ValueError(f"the checksum of {STATE} does not hold")
    return state, checksums


def check_arrays(arrays: Mapping[str, np.ndarray], checksums: Mapping[str, Any]) -> None:
    """Raises `ValueError`, which names the first array that is not as it was written."""
    found = array_checksums(arrays)
    if wrong := sorted(dict(found.items() ^ checksums["arrays"].items())):
        raise ValueError(f"the checksum of {wrong[0]} in {ARRAYS} does not hold")


def array_checksums(arrays: Mapping[str, np.ndarray]) -> dict[str, str]:
    """By name: type, shape and a checksum of the values."""
    return {name: _array_checksum(array) for name, array in arrays.items()}


def state_checksum(state: Mapping[str, Any]) -> str:
    """Hexadecimal digest of a state, and of that it has checksums."""
    return _digest({**state, HAS_CHECKSUMS: True})


def _digest(state: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def _array_checksum(array: np.ndarray) -> str:
    array = np.ascontiguousarray(array)
    return f"{array.dtype.str} {list(array.shape)} {zlib.crc32(array.view(np.uint8).data):08x}"
