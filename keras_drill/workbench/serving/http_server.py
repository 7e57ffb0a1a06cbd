"""The HTTP server: paths, headers and limits. `RestApi` computes the responses."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

from keras_drill.workbench.serving.browsers import SameSite
from keras_drill.workbench.serving.errors import ServingError
from keras_drill.workbench.serving.limits import Limits
from keras_drill.workbench.serving.metrics import Metrics
from keras_drill.workbench.serving.page import PAGE_FILES
from keras_drill.workbench.serving.rest import RestApi

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class HttpServer:
    """Serves the REST interface, the web page, the metrics and a readiness check over HTTP.

    Args:
        rest: The REST interface, for `/v1/...`.
        metrics: Metrics for `/monitoring/prometheus/metrics`.
        limits: Limits of requests.
        same_site: Check that refuses requests from pages of other sites.
        is_ready: Function that returns whether the server is ready, for `/healthz`.
    """

    def __init__(
        self,
        rest: RestApi,
        metrics: Metrics,
        limits: Limits,
        same_site: SameSite,
        is_ready: Callable[[], bool],
    ):
        self.rest = rest
        self.metrics = metrics
        self.limits = limits
        self.same_site = same_site
        self.is_ready = is_ready
        self._web = _aiohttp_web()
        self._runner: Any = None

    async def start(self, host: str, port: int, grace_seconds: float) -> int:
        """Starts to listen, and returns the port.

        Args:
            host: Address to listen on.
            port: TCP port; 0 lets the system choose a port.
            grace_seconds: Maximum time for current requests when the server stops.
        """

        @self._web.middleware
        async def refuse_in_json(request: Any, handler: Callable[[Any], Awaitable]) -> Any:
            return await self._refuse_in_json(request, handler)

        application = self._web.Application(
            client_max_size=self.limits.request_bytes, middlewares=[refuse_in_json]
        )
        for path in PAGE_FILES:
            application.router.add_get(path, self._page)
        application.router.add_get("/models", self._models)
        application.router.add_get("/healthz", self._health)
        application.router.add_get("/monitoring/prometheus/metrics", self._metrics)
        application.router.add_route("*", "/v1/{rest:.*}", self._rest)
        self._runner = self._web.AppRunner(
            application, access_log=None, shutdown_timeout=grace_seconds
        )
        await self._runner.setup()
        await self._web.TCPSite(self._runner, host, port).start()
        return self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Refuses new connections, and waits for the current requests."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _refuse_in_json(self, request: Any, handler: Callable[[Any], Awaitable]) -> Any:
        """Wraps every handler. Refuses requests of other sites, and returns errors as JSON."""
        try:
            is_link = request.path == "/" and request.headers.get("Sec-Fetch-Mode") == "navigate"
            self.same_site.check(request.headers, is_link_to_page=is_link)
            response = await handler(request)
        except ServingError as error:
            response = self._json({"error": error.message}, error.http_status)
        except self._web.HTTPRequestEntityTooLarge:
            most = self.limits.request_bytes
            response = self._json(
                {"error": f"The request is too large; at most {most} bytes are allowed"}, 413
            )
        except self._web.HTTPException as error:
            message = f"{error.reason}: {request.method} {request.path}"
            response = self._json({"error": message}, error.status)
        except Exception as error:
            response = self._json({"error": f"{type(error).__name__}: {error}"}, 500)
        response.headers.update(_HEADERS)
        return response

    async def _rest(self, request: Any) -> Any:
        try:
            body = await asyncio.wait_for(request.read(), self.limits.seconds)
        except (TimeoutError, asyncio.TimeoutError) as error:  # two classes before Python 3.11
            raise ServingError(
                "DEADLINE_EXCEEDED", "The request did not arrive in time", http_status=408
            ) from error
        path = request.rel_url.raw_path
        status, answer = await self.rest.answer(request.method, path, body)
        return self._json(answer, status)

    async def _page(self, request: Any) -> Any:
        content, content_type = PAGE_FILES[request.path]()
        return self._web.Response(text=content, content_type=content_type, charset="utf-8")

    async def _models(self, request: Any) -> Any:
        """Lists the models for the web page; TensorFlow Serving has no such path."""
        models = []
        for name in self.rest.models.names:
            with contextlib.suppress(ServingError), self.rest.models.use(name) as servable:
                signatures = {
                    key: sorted(signature.inputs)
                    for key, signature in servable.signature_defs.items()
                    if signature.inputs
                }
                versions = self.rest.models.available(name)
                models.append({"name": name, "versions": versions, "signatures": signatures})
        are_loading = self.rest.models.are_loading
        return self._json({"models": models, "are_loading": are_loading}, 200)

    async def _health(self, request: Any) -> Any:
        ready = self.is_ready()
        return self._json({"ready": ready}, 200 if ready else 503)

    async def _metrics(self, request: Any) -> Any:
        return self._web.Response(text=self.metrics.text(), content_type="text/plain")

    def _json(self, document: Any, status: int) -> Any:
        text = json.dumps(document)
        return self._web.Response(text=text, status=status, content_type="application/json")


def _aiohttp_web() -> Any:
    try:
        from aiohttp import web
    except ImportError as error:
        raise ImportError(
            "The server needs more libraries: pip install 'keras-drill[serve]'"
        ) from error
    return web
