"""Runs the toy pipeline in a process of its own: `run_toys.py STORE SECONDS [KILLS]`.

With a number of kills it is run in so many forked processes before, each of which is killed at a
random moment: importing everything takes longer than all of them.
"""

import os
import pathlib
import random
import shutil
import signal
import sys
import time

from pipelines.engine.artifact_store import ArtifactStore
from pipelines.engine.run_pipeline import run_pipeline
from tests.pipelines.toys import toy_pipeline


def run_slowly(store, seconds):
    """Runs the pipeline, so many seconds a component, with half a file there meanwhile."""
    pipeline = toy_pipeline("a long word " * 50_000, "left", "right", "end")
    for component in pipeline:
        run = component.run

        def slowly(inputs, output, progress, run=run):
            (output / "half.txt").write_text("half")
            time.sleep(seconds)
            (output / "half.txt").unlink()
            return run(inputs, output, progress)

        component.run = slowly
    run_pipeline(pipeline, ArtifactStore(store))


def kill_at_random(store, seconds, kills):
    moments = random.Random(5)
    for number in range(kills):
        child = os.fork()
        if not child:
            run_slowly(store, seconds)
            os._exit(0)
        time.sleep(moments.uniform(0, 5 * seconds))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for path in pathlib.Path(store).glob("artifacts/*/[!.]*"):
            assert (path / "lineage.json").exists() and not (path / "half.txt").exists(), path
        if number % 7 == 6:
            shutil.rmtree(store, ignore_errors=True)  # begins anew


if __name__ == "__main__":
    # A shell that starts tests in the background has them ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    folder, pause = sys.argv[1], float(sys.argv[2])
    print("begin", flush=True)
    if len(sys.argv) > 3:
        kill_at_random(folder, pause, int(sys.argv[3]))
    run_slowly(folder, pause)
