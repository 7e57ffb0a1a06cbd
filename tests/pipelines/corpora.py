"""Tiny corpora of each task, and the options of their runs."""

from keras_drill.workbench.tasks.load_config import config_class
from tests.workbench.training import tiny, tiny_pairs

TASKS = ("language-model", "translation", "dialog", "autoencoder")


def write_dialogues(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for split, number in (("train", 41), ("valid", 5), ("test", 3)):
        lines = [
            f"Hello {split} {i} . __eou__ Who is there ? __eou__ Me . __eou__"
            for i in range(number)
        ]
        (folder / f"{split}.txt").write_text("".join(f"{line}\n" for line in lines))
    return folder


_WRITE = {"translation": tiny_pairs.write_pairs, "dialog": write_dialogues}


def tiny_task(task, folder, **changes):
    """A corpus in `folder`, and the options of a run on it."""
    data = _WRITE.get(task, tiny.write_corpus)(folder)
    small = dict(tiny.TINY if task == "language-model" else tiny_pairs.TINY)
    small |= {name.replace("_", ".", 1): value for name, value in changes.items()}
    kind = config_class(task)
    if task == "language-model":
        small.setdefault("data.tokenizer", "whitespace")
    else:
        small.setdefault("data.tokenizer", "words")
    return kind.replace(kind(), {**small, "data.path": str(data)})
