"""The first steps with the installed package, as a user takes them, away from the sources.

`python -I tests/package/first_steps.py`, by the interpreter of an environment that has the package.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

SMALL = {
    "data.batch_size": 3,
    "data.sequence_length": 11,
    "backbone.embedding_dim": 7,
    "backbone.units": 5,
    "head.tile_size": 37,
    "training.epochs": 1,
}
LINES = ["the cat sees a dog .", "a dog hears the old bird .", "the bird follows the cat ."]


def keras_drill(*words: object) -> str:
    """What the installed command prints."""
    command = Path(sys.executable).with_name("keras-drill")
    result = subprocess.run([command, *map(str, words)], capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"keras-drill {words[0]} failed:\n{result.stdout}\n{result.stderr}")
    return result.stdout


def check(condition: bool, what: str) -> None:
    if not condition:
        raise SystemExit(f"first steps: {what}")


def main() -> None:
    sources = Path(__file__).resolve().parents[2]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        import keras_drill as package

        home = Path(package.__file__).resolve().parent
        check(sources / "keras_drill" != home, f"{home} is the source tree, not what was installed")
        check((home / "py.typed").exists(), "py.typed is missing")
        recipes = {
            path.stem for path in (sources / "keras_drill" / "workbench" / "recipes").glob("*.toml")
        }
        listed = keras_drill("recipes")
        check(all(name in listed for name in recipes), f"recipes are missing in:\n{listed}")
        check("[head]" in keras_drill("recipes", "small-drill"), "a recipe cannot be printed")

        Path("text.txt").write_text("\n".join(LINES * 67) + "\n")
        options = [word for name, value in SMALL.items() for word in (f"--{name}", value)]
        for head in ("tied", "drill"):
            run = f"runs/{head}"
            keras_drill("train", f"small-{head}", "--data", "text.txt", "--run", run, *options)
        table = keras_drill("evaluate", "runs/tied", "runs/drill", "--report", "report.html")
        check("tied" in table and "drill" in table, f"no comparison in:\n{table}")
        check(Path("report.html").stat().st_size > 1000, "no report")
        check("perplexity" in keras_drill("score", "runs/drill", "the cat"), "nothing was scored")
        said = keras_drill("generate", "runs/drill", "the cat", "--max-tokens", 3)
        check(said.startswith("the cat"), f"nothing was continued: {said!r}")
        exported = Path(keras_drill("export", "runs/drill").strip())
        check((exported / "saved_model.pb").exists(), f"nothing was exported to {exported}")
    print("first steps: done")


if __name__ == "__main__":
    main()
