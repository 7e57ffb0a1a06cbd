"""The models in a folder, and their loaded versions."""

import asyncio
import contextlib
import dataclasses
import gc
import os
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from pathlib import Path

from keras_drill.workbench.serving.errors import ServingError, error_of_tensorflow, invalid
from keras_drill.workbench.serving.servable import Servable

_NUMBER = re.compile(r"[0-9]{1,19}")


@dataclasses.dataclass(eq=False)
class Version:
    """One version of a model with its state, as in `ModelVersionStatus`.

    `state` is START, LOADING, AVAILABLE, UNLOADING or END. If a version could not be loaded, `code`
    and `message` give the reason.
    """

    number: int
    folder: Path
    state: str = "START"
    code: str = "OK"
    message: str = ""
    servable: Servable | None = None
    users: int = 0
    files: tuple = ()

    @property
    def is_broken(self) -> bool:
        return self.state == "END" and self.code != "OK"


class Models:
    """Loads the last versions of every model in `<base>/<name>/<version>/`, and watches the folder.

    - While a new version is being loaded, the previous version serves requests. The previous
      version stays loaded afterwards. Older versions are unloaded after their last request.
    - If a version cannot be loaded, the previous version continues to serve. Loading is tried
      again when the version's files change.
    - If the folder of a version is removed, the version is unloaded.
    - Folders whose names begin with a dot are ignored.

    Args:
        base: The folder of models.
        executor: Executor with the thread that loads models.
        labels: For each model, versions by label. Labelled versions stay loaded.
        kept: Number of versions of a model to keep loaded.
        log: Function that is called with a line of text when a version is loaded or unloaded, or
            cannot be loaded.
    """

    def __init__(
        self,
        base: str | os.PathLike,
        executor: Executor,
        labels: Mapping[str, Mapping[str, int]] | None = None,
        kept: int = 2,
        log: Callable[[str], None] = lambda line: None,
    ):
        self.base = Path(base)
        self.labels = labels or {}
        self.kept = kept
        self.log = log
        self.has_looked = False
        self._executor = executor
        self._models: dict[str, dict[int, Version]] = {}
        self._trouble = ""

    @property
    def names(self) -> list[str]:
        """Names of the models with an available version, sorted."""
        return sorted(name for name in self._models if self.available(name))

    @property
    def are_loading(self) -> bool:
        """Whether a version is being loaded, or the folder was not read yet."""
        versions = (version for some in self._models.values() for version in some.values())
        return not self.has_looked or any(version.state == "LOADING" for version in versions)

    def available(self, name: str) -> list[int]:
        """Returns the available versions of a model, the newest first."""
        versions = self._models.get(name, {}).values()
        return sorted((v.number for v in versions if v.state == "AVAILABLE"), reverse=True)

    def versions(
        self, name: str, version: int | None = None, label: str | None = None
    ) -> list[Version]:
        """Returns all versions of a model, the newest first, or the given version."""
        version = self._number(name, version, label)
        versions = self._models.get(name, {})
        if version is not None:
            if version not in versions:
                raise ServingError("NOT_FOUND", f"Could not find version {version} of model {name}")
            return [versions[version]]
        if not versions:
            raise ServingError("NOT_FOUND", f"Could not find any versions of model {name}")
        return [versions[number] for number in sorted(versions, reverse=True)]

    @contextlib.contextmanager
    def use(
        self, name: str, version: int | None = None, label: str | None = None
    ) -> Iterator[Servable]:
        """Context manager for a loaded version, which stays loaded within the context.

        Args:
            name: Name of the model.
            version: Number of the version; `None` for the newest.
            label: Label of the version, instead of a number.
        """
        if not name:
            raise invalid("ModelSpec has no name specified.")
        version = self._number(name, version, label)
        available = self.available(name)
        if not available or (version is not None and version not in available):
            shown = f"Latest({name})" if version is None else f"Specific({name}, {version})"
            raise ServingError("NOT_FOUND", f"Servable not found for request: {shown}")
        used = self._models[name][available[0] if version is None else version]
        if used.servable is None:
            raise RuntimeError(f"{used} is marked as available, but is not loaded")
        used.users += 1
        try:
            yield used.servable
        finally:
            used.users -= 1
            if used.state == "UNLOADING" and not used.users:
                self._end(name, used)

    async def watch(self, seconds: float) -> None:
        """Calls `look` at intervals of `seconds` until the task is cancelled."""
        while True:
            try:
                await self.look()
            except Exception as error:  # an error of one model must not stop the others' updates
                self.log(
                    f"cannot update the models of {self.base}: {type(error).__name__}: {error}"
                )
            await asyncio.sleep(seconds)

    async def look(self) -> None:
        """Loads new versions from the folder, and unloads versions that are no longer needed."""
        loop = asyncio.get_running_loop()
        try:
            folders = await loop.run_in_executor(self._executor, _folders, self.base)
        except OSError as error:  # for example an unavailable network file system
            if self._trouble != str(error):
                self._trouble = str(error)
                self.log(
                    f"cannot read {self.base}: {error.strerror}; loaded models continue to serve"
                )
            return
        self._trouble = ""
        for name in sorted(folders.keys() | self._models.keys()):
            await self._look_at(name, folders.get(name, {}))
        self.has_looked = True

    async def _look_at(self, name: str, folders: Mapping[int, Path]) -> None:
        versions = self._models.setdefault(name, {})
        for version in list(versions.values()):
            if version.number not in folders:
                self._unload(name, version)
        wanted: list[int] = []
        for number in sorted(folders, reverse=True):
            if len(wanted) >= self.kept and number not in self.labels.get(name, {}).values():
                continue
            if await self._load(name, number, folders[number]):
                wanted.append(number)
        for version in list(versions.values()):
            if version.number not in wanted:
                self._unload(name, version)
            if version.number not in folders and version.state == "END":
                del versions[version.number]
        if not versions:
            del self._models[name]

    def _unload(self, name: str, version: Version) -> None:
        if version.state == "AVAILABLE":
            version.state = "UNLOADING"
            if not version.users:
                self._end(name, version)

    async def _load(self, name: str, number: int, folder: Path) -> bool:
        """Loads a version unless it is loaded, and returns whether it is available."""
        versions = self._models[name]
        version = versions.get(number)
        if version is not None and version.state == "AVAILABLE":
            return True
        if version is not None and version.state == "UNLOADING":
            version.state = "AVAILABLE"  # its folder returned before its last request had ended
            return True
        loop = asyncio.get_running_loop()
        files = await loop.run_in_executor(self._executor, _files, folder)
        if version is not None and version.is_broken and version.files == files:
            return False
        version = versions[number] = Version(number, folder, "LOADING", files=files)
        start = loop.time()
        try:
            version.servable, warmed = await loop.run_in_executor(
                self._executor, _loaded, name, number, folder
            )
        except ServingError as error:
            version.state, version.code, version.message = "END", error.code, error.message
            self.log(f"{name} version {number} cannot be loaded: {error.message}")
            return False
        version.state = "AVAILABLE"
        self.log(
            f"{name} version {number} is loaded: {loop.time() - start:.1f} s, "
            f"{warmed} warm-up requests"
        )
        return True

    def _end(self, name: str, version: Version) -> None:
        version.state, version.servable = "END", None
        self.log(f"{name} version {version.number} was unloaded")
        gc.collect()  # a loaded model has circular references

    def _number(self, name: str, version: int | None, label: str | None) -> int | None:
        if not label:
            return version
        if version is not None:
            raise invalid(
                f"Both model version ({version}) and model version label ({label}) cannot be "
                "supplied."
            )
        if label not in self.labels.get(name, {}):
            raise invalid(f"Unrecognized servable version label: {label}")
        return self.labels[name][label]


def _loaded(name: str, number: int, folder: Path) -> tuple[Servable, int]:
    """Loads a version and runs its warm-up requests.

    Returns:
        The loaded version, and the number of warm-up requests.
    """
    import tensorflow as tf

    try:
        servable = Servable(name, number, folder)
        return servable, servable.warm_up()
    except ServingError:
        raise
    except tf.errors.OpError as error:
        raise error_of_tensorflow(error) from error
    except Exception as error:  # TensorFlow raises various errors for a damaged SavedModel
        raise ServingError("UNKNOWN", f"{type(error).__name__}: {error}") from error


def _folders(base: Path) -> dict[str, dict[int, Path]]:
    """Returns the folders of versions in `base`, by name of the model and version number."""
    found: dict[str, dict[int, Path]] = {}
    for model in base.iterdir():
        if model.name.startswith(".") or re.search("[:/]", model.name) or not model.is_dir():
            continue
        with contextlib.suppress(FileNotFoundError):  # removed after it was listed
            found[model.name] = {
                int(version.name): version
                for version in model.iterdir()
                if _NUMBER.fullmatch(version.name) and version.is_dir()
            }
    return found


def _files(folder: Path) -> tuple:
    """Returns the paths, sizes and times of the files in a folder, to detect changes."""
    found = []
    for path in sorted(folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            state = path.stat()
            found.append((str(path), state.st_size, state.st_mtime_ns))
    return tuple(found)
