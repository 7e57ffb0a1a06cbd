"""Sends concurrent requests to a server and records the responses and their times.

    python -m benchmarks.serving_load URL REQUESTS ANSWERS [--concurrency 32]

REQUESTS has a line of JSON for each request, with its `path` and `body`. The program writes a line
for each request to ANSWERS, in the same order, with `status`, `answer`, and the times `start` and
`end` in seconds since the first request. It runs in a separate process, so that it does not slow
down the server's process.
"""

import argparse
import asyncio
import json
import time
from pathlib import Path

import aiohttp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("requests", type=Path)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--concurrency", type=int, default=32)
    arguments = parser.parse_args()
    lines = arguments.requests.read_text(encoding="utf-8").splitlines()
    requests = [json.loads(line) for line in lines]
    answers = asyncio.run(send(arguments.url, requests, arguments.concurrency))
    arguments.answers.write_text("".join(json.dumps(answer) + "\n" for answer in answers))


async def send(url: str, requests: list[dict], concurrency: int) -> list[dict]:
    """The answers to requests, of which `concurrency` are under way at any time."""
    answers: list[dict] = [{}] * len(requests)
    waiting = iter(enumerate(requests))
    begin = time.perf_counter()

    async def work(session: aiohttp.ClientSession) -> None:
        for index, request in waiting:
            start = time.perf_counter() - begin
            async with session.post(url + request["path"], data=request["body"]) as response:
                answer = await response.json(content_type=None)
                end = time.perf_counter() - begin
            answers[index] = {
                "status": response.status,
                "answer": answer,
                "start": start,
                "end": end,
            }

    connector = aiohttp.TCPConnector(limit=concurrency)
    timeout = aiohttp.ClientTimeout(total=600)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        await asyncio.gather(*(work(session) for _ in range(concurrency)))
    return answers


if __name__ == "__main__":
    main()
