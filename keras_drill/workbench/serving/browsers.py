"""Keeps other sites' pages away from a server on the reader's own machine."""

import ipaddress
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from keras_drill.workbench.serving.errors import ServingError


class SameSite:
    """Refuses requests that a page of another site sends, or that another site's name brought.

    A browser tells where a request comes from (`Origin`, `Sec-Fetch-Site`) and for which host it
    means it (`Host`). An attacker can make a name of their own point to this machine, but cannot
    make a browser call it otherwise: only addresses and known names are answered. Programs, which
    tell no origin, are not concerned.

    Args:
        names: Host names to answer, besides `localhost` and addresses.

    Example:

    >>> SameSite().check({"Host": "localhost:8501", "Origin": "http://localhost:8501"})
    >>> SameSite().check({"Host": "localhost:8501", "Origin": "http://a.org"})
    Traceback (most recent call last):
    keras_drill.workbench.serving.errors.ServingError: Pages of http://a.org may not use this server
    """

    def __init__(self, names: Iterable[str] = ()):
        self.names = {"localhost", *(name.lower() for name in names)}

    def check(self, headers: Mapping[str, str], is_link_to_page: bool = False) -> None:
        """Refuses a request by its headers.

        Args:
            headers: Of the request.
            is_link_to_page: Whether it only asks for the page, which any link may.
        """
        host = headers.get("Host", "")
        if not self._is_known(host):
            raise ServingError(
                "PERMISSION_DENIED",
                f"This server is not known as {host!r}; start it with --allow-host to let it be",
            )
        origin = headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            raise ServingError("PERMISSION_DENIED", f"Pages of {origin} may not use this server")
        site = headers.get("Sec-Fetch-Site", "none")
        if site not in ("none", "same-origin") and not is_link_to_page:
            raise ServingError("PERMISSION_DENIED", "Pages of other sites may not use this server")

    def _is_known(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:  # brackets with no address in them
            return False
        return name.rstrip(".") in self.names or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
