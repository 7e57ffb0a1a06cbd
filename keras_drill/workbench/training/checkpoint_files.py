"""Reads the files of a checkpoint and verifies their checksums."""

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
HAS_CHECKSUMS = "has_checksums"  # key in the state of a checkpoint that needs its checksum file


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Reads the arrays of a file that `np.savez` wrote.

    The function is safe for damaged and untrusted files: it loads no pickled objects, and never
    allocates more memory than the size of the file.

    Raises:
        ValueError: An array's shape does not match its length in the file.
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
                    raise ValueError(f"the length of {entry.filename} does not match shape {shape}")
            with archive.open(entry) as file:
                array = np.lib.format.read_array(file, allow_pickle=False)
                file.read(1)  # at its end the archive checks its own checksum
            arrays[entry.filename.removesuffix(".npy")] = array
    return arrays


def read_state(folder: Path, step: int) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Reads the training state of a checkpoint and verifies its checksum.

    Args:
        folder: Folder of the checkpoint.
        step: Expected step of the checkpoint.

    Returns:
        The state, and the checksums of state and arrays. Checkpoints of old versions have no
        checksums, and give `None`.

    Raises:
        ValueError: The checkpoint is of another step, or the state was changed.
    """
    state = json.loads((folder / STATE).read_text(encoding="utf-8"))
    path = folder / CHECKSUMS
    if not (state.pop(HAS_CHECKSUMS, False) or path.exists()):
        return state, None
    checksums = json.loads(path.read_text(encoding="utf-8"))
    # An old version did not mark the state either.
    expected = (step, state_checksum(state)) if "step" in checksums else (None, _digest(state))
    if checksums.get("step") != expected[0]:
        raise ValueError(f"its checksums are of step {checksums.get('step')}, not {step}")
    if checksums["state"] != expected[1]:
        raise ValueError(f"the checksum of {STATE} is wrong")
    return state, checksums


def check_arrays(arrays: Mapping[str, np.ndarray], checksums: Mapping[str, Any]) -> None:
    """Raises `ValueError` with the name of the first array whose checksum is wrong."""
    found = array_checksums(arrays)
    if wrong := sorted(dict(found.items() ^ checksums["arrays"].items())):
        raise ValueError(f"the checksum of {wrong[0]} in {ARRAYS} is wrong")


def array_checksums(arrays: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Returns the type, the shape and a checksum of each array, by name."""
    return {name: _array_checksum(array) for name, array in arrays.items()}


def state_checksum(state: Mapping[str, Any]) -> str:
    """Returns the hexadecimal checksum of a state, with the entry `HAS_CHECKSUMS` added."""
    return _digest({**state, HAS_CHECKSUMS: True})


def _digest(state: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def _array_checksum(array: np.ndarray) -> str:
    array = np.ascontiguousarray(array)
    return f"{array.dtype.str} {list(array.shape)} {zlib.crc32(array.view(np.uint8).data):08x}"
