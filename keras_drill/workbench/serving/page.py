"""Reads the files of the web page on which users try models."""

from collections.abc import Callable
from importlib import resources

from keras_drill.workbench.page_style import BASE_STYLE


def _read(name: str) -> str:
    return (resources.files("keras_drill.workbench.serving") / "web" / name).read_text(
        encoding="utf-8"
    )


# By path, a function that returns the content and the content type.
PAGE_FILES: dict[str, Callable[[], tuple[str, str]]] = {
    "/": lambda: (_read("page.html"), "text/html"),
    "/page.css": lambda: (BASE_STYLE + _read("page.css"), "text/css"),
    "/page.js": lambda: (_read("page.js"), "text/javascript"),
    "/elements.js": lambda: (_read("elements.js"), "text/javascript"),
    "/requests.js": lambda: (_read("requests.js"), "text/javascript"),
    "/views.js": lambda: (_read("views.js"), "text/javascript"),
}
