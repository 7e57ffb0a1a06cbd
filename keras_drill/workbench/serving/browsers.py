"""Protection of a local server against requests from web pages of other sites."""

import ipaddress
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from keras_drill.workbench.serving.errors import ServingError


class SameSite:
    """Refuses requests from web pages of other sites, and requests to unknown host names.

    A browser sends the origin of a request (`Origin`, `Sec-Fetch-Site`) and the host name of the
    request (`Host`). An attacker can make a domain name point to this machine, but the browser
    then sends this name as `Host`. Therefore only IP addresses and known host names are accepted.
    Programs other than browsers send no origin, and are accepted.

    Args:
        names: Host names to accept, in addition to `localhost` and IP addresses.

    Example:

    >>> SameSite().check({"Host": "localhost:8501", "Origin": "http://localhost:8501"})
    >>> SameSite().check({"Host": "localhost:8501", "Origin": "http://a.org"})
    Traceback (most recent call last):
    keras_drill.workbench.serving.errors.ServingError: Browsers may use this server only from the
    server's own pages. Received: Origin: http://a.org, Host: localhost:8501
    """

    def __init__(self, names: Iterable[str] = ()):
        self.names = {"localhost", *(name.lower() for name in names)}

    def check(self, headers: Mapping[str, str], is_link_to_page: bool = False) -> None:
        """Raises `ServingError` if a request is refused.

        Args:
            headers: Headers of the request.
            is_link_to_page: Whether the request only opens the server's page. Pages of other sites
                may link to it.
        """
        host = headers.get("Host", "")
        if not self._is_known(host):
            raise ServingError(
                "PERMISSION_DENIED",
                f"This server does not accept requests to the host name {host!r}; start the "
                "server with --allow-host and this name",
            )
        origin = headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            raise ServingError(
                "PERMISSION_DENIED",
                "Browsers may use this server only from the server's own pages. "
                f"Received: Origin: {origin}, Host: {host}",
            )
        site = headers.get("Sec-Fetch-Site", "none")
        if site not in ("none", "same-origin") and not is_link_to_page:
            raise ServingError(
                "PERMISSION_DENIED",
                "Browsers may use this server only from the server's own pages. "
                f"Received: Sec-Fetch-Site: {site}",
            )

    def _is_known(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:  # brackets without an address in them
            return False
        return name.rstrip(".") in self.names or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
