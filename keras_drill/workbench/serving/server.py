"""The development server: models, REST and gRPC interfaces in one process."""

import asyncio
import dataclasses
import os
import signal
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from keras_drill.workbench.serving.batching import Batcher, BatchingOptions
from keras_drill.workbench.serving.browsers import SameSite
from keras_drill.workbench.serving.grpc_server import GrpcServer
from keras_drill.workbench.serving.http_server import HttpServer
from keras_drill.workbench.serving.limits import Limits
from keras_drill.workbench.serving.metrics import Metrics
from keras_drill.workbench.serving.models import Models
from keras_drill.workbench.serving.predictions import Predictor
from keras_drill.workbench.serving.rest import RestApi


@dataclasses.dataclass(frozen=True)
class ServerOptions:
    """Options of the server.

    Args:
        base: The folder of models, `<base>/<name>/<version>/`.
        host: Address to listen on. Other machines can reach the server unless this is the loopback
            address.
        port: Port of HTTP; 0 lets the system choose a port.
        grpc_port: Port of gRPC; 0 lets the system choose a port, `None` disables gRPC.
        allowed_hosts: Host names by which browsers may reach the server, in addition to localhost.
        batching: Options of batching.
        limits: Limits of requests.
        labels: For each model, versions by label.
        threads: Number of batches that run at the same time; `None` for one per core.
        poll_seconds: Seconds between checks of the folder for new versions.
        grace_seconds: Maximum time for current requests when the server stops.
    """

    base: Path
    host: str = "127.0.0.1"
    port: int = 8501
    grpc_port: int | None = 8500
    allowed_hosts: tuple[str, ...] = ()
    batching: BatchingOptions = dataclasses.field(default_factory=BatchingOptions)
    limits: Limits = dataclasses.field(default_factory=Limits)
    labels: Mapping[str, Mapping[str, int]] = dataclasses.field(default_factory=dict)
    threads: int | None = None
    poll_seconds: float = 1.0
    grace_seconds: float = 30.0


class Server:
    """Serves the models in a folder over REST, gRPC and a web page, in the running event loop.

    Args:
        options: Options of the server.
        log: Function that is called with a line of text for each event.

    Attributes:
        port: Port of HTTP, set by `start`.
        grpc_port: Port of gRPC, set by `start`; `None` without gRPC.
    """

    def __init__(self, options: ServerOptions, log: Callable[[str], None] = lambda line: None):
        self.options = options
        self.log = log
        self.port = 0
        self.grpc_port: int | None = None
        threads = options.threads or os.cpu_count() or 1
        self._runners = ThreadPoolExecutor(threads, "run")
        self._loader = ThreadPoolExecutor(1, "load")
        self.metrics = Metrics()
        self.models = Models(options.base, self._loader, options.labels, log=log)
        self._batcher = Batcher(
            self._runners, threads, options.batching, options.limits, self.metrics
        )
        predictor = Predictor(self._batcher, options.limits)
        self._http = HttpServer(
            RestApi(self.models, predictor, self.metrics),
            self.metrics,
            options.limits,
            SameSite([*options.allowed_hosts, options.host]),
            self.is_ready,
        )
        self._grpc = None
        if options.grpc_port is not None:
            self._grpc = GrpcServer(self.models, predictor, self.metrics, options.limits)
        self._watcher: asyncio.Task | None = None
        self._is_stopping = False

    def is_ready(self) -> bool:
        """Returns whether a model is available and the server is not stopping."""
        return self.models.has_looked and bool(self.models.names) and not self._is_stopping

    async def start(self) -> None:
        """Starts to listen and to load models. Returns before models are available."""
        options = self.options
        self.port = await self._http.start(options.host, options.port, options.grace_seconds)
        if self._grpc is not None and options.grpc_port is not None:
            self.grpc_port = await self._grpc.start(options.host, options.grpc_port)
        self._watcher = asyncio.create_task(self.models.watch(options.poll_seconds))

    async def stop(self) -> None:
        """Refuses new requests, finishes the current ones, and releases all resources."""
        self._is_stopping = True
        if self._watcher is not None:
            self._watcher.cancel()
        stops = [self._http.stop()]
        if self._grpc is not None:
            stops.append(self._grpc.stop(self.options.grace_seconds))
        await asyncio.gather(*stops)
        await self._batcher.close()
        self._runners.shutdown(wait=False, cancel_futures=True)
        self._loader.shutdown(wait=False, cancel_futures=True)


def serve(options: ServerOptions, announce: Callable[[Server], None]) -> None:
    """Serves until SIGTERM or Ctrl-C. A second signal ends the process without waiting.

    Args:
        options: Options of the server.
        announce: Function that is called with the server when it has started to listen.
    """

    def log(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    async def run() -> None:
        stopping = asyncio.Event()

        def stop() -> None:
            if stopping.is_set():
                os._exit(130)
            log("stopping: the server finishes the current requests")
            stopping.set()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
        server = Server(options, log)
        try:
            await server.start()
            announce(server)
            await stopping.wait()
        finally:
            await server.stop()

    asyncio.run(run())
