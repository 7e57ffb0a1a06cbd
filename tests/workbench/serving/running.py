"""A server in a thread of its own."""

import asyncio
import contextlib
import threading
import time

import requests

from keras_drill.workbench.serving import Server, ServerOptions


class RunningServer:
    """A started `Server`, and requests to it."""

    def __init__(self, server, loop, lines):
        self.server = server
        self.loop = loop
        self.lines = lines
        self.url = f"http://127.0.0.1:{server.port}"
        self.grpc = f"127.0.0.1:{server.grpc_port}"

    def get(self, path, **options):
        return requests.get(self.url + path, timeout=300, **options)

    def post(self, path, document=None, **options):
        return requests.post(self.url + path, json=document, timeout=300, **options)

    def predict(self, document, model="small"):
        return self.post(f"/v1/models/{model}:predict", document)

    def look(self):
        """Takes up what is new now."""
        self.run(self.server.models.look())

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(300)

    def wait_for(self, condition, seconds=300):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, self.lines
            time.sleep(0.01)


@contextlib.contextmanager
def running(base, **options):
    """A server of the models under `base`, which have been loaded."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    lines = []
    settings = {"port": 0, "grpc_port": 0, "poll_seconds": 3600, "threads": 2} | options

    async def start():
        server = Server(ServerOptions(base, **settings), lines.append)
        await server.start()
        return server

    server = asyncio.run_coroutine_threadsafe(start(), loop).result(300)
    made = RunningServer(server, loop, lines)
    try:
        made.wait_for(lambda: server.models.has_looked)
        yield made
    finally:
        made.run(server.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
