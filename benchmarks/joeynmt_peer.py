"""Runs JoeyNMT for `benchmarks.translation_training`, in its own environment.

    python -m benchmarks.joeynmt_peer FOLDER

FOLDER has `settings.json` and batches as ids; the program uses JoeyNMT's model, loss and search,
with torch's optimizer. For every line on standard input, it runs a task and writes a line: "set"
trains on the batches of `speed.npz`; "epoch N" on those of `epoch-N.npz`, from the checkpoint of
the epoch before; "perplexity" evaluates the batches of `test.npz`; "answer" translates those of
`sources.npz` and saves `answers.npz`.
"""

import json
import math
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from joeynmt.batch import Batch
from joeynmt.model import build_model
from joeynmt.search import search


class Words:
    """What JoeyNMT's models ask of a vocabulary."""

    def __init__(self, size: int, pad: int, unknown: int, start: int, end: int):
        self.size = size
        self.pad_index, self.unk_index, self.bos_index, self.eos_index = pad, unknown, start, end
        self.sep_index = None
        self.specials, self.lang_tags = [], []

    def __len__(self) -> int:
        return self.size

    def lookup(self, token: str) -> int:
        return self.unk_index


class Training:
    """A model of JoeyNMT, its optimizer, and how many steps they have taken."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.settings = SimpleNamespace(**json.loads((folder / "settings.json").read_text()))
        torch.manual_seed(self.settings.seed)
        words = Words(**self.settings.words)
        self.model = build_model(self.settings.model, words, words)
        self.model.loss_function = ("crossentropy", self.settings.label_smoothing)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), betas=(0.9, self.settings.beta_2), eps=1e-7
        )
        self.steps = 0

    def batch(self, source: np.ndarray, target: np.ndarray | None, train: bool) -> Batch:
        source = torch.from_numpy(source).long()
        batch = Batch(
            src=source,
            src_length=(source != self.model.pad_index).sum(1),
            src_prompt_mask=None,
            trg=None if target is None else torch.from_numpy(target).long(),
            trg_prompt_mask=None,
            indices=torch.arange(len(source)),
            device=torch.device("cpu"),
            pad_index=self.model.pad_index,
            eos_index=self.model.eos_index,
            is_train=train,
        )
        return batch

    def train(self, name: str) -> float:
        """Trains on a file of batches; returns the mean loss of a token."""
        self.model.train()
        total = tokens = 0
        for source, target in read_pairs(self.folder / name):
            batch = self.batch(source, target, train=True)
            batch.sort_by_src_length()
            for group in self.optimizer.param_groups:
                group["lr"] = self.settings.learning_rates[self.steps]
            self.optimizer.zero_grad()
            loss, *_ = self.model(return_type="loss", **vars(batch))
            batch.normalize(loss, "tokens").backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip_norm)
            self.optimizer.step()
            self.steps += 1
            total, tokens = total + loss.item(), tokens + batch.ntokens
        return total / tokens

    def train_epoch(self, epoch: int) -> float:
        path = self.folder / f"joeynmt-{epoch}.pt"
        if path.exists():
            self._restore(path)
            return self.loss
        self.loss = self.train(f"epoch-{epoch}.npz")
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        written = path.with_suffix(".written")
        torch.save({**state, "steps": self.steps, "loss": self.loss}, written)
        os.replace(written, path)
        return self.loss

    def _restore(self, path: Path) -> None:
        saved = torch.load(path, weights_only=True)
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.steps, self.loss = saved["steps"], saved["loss"]
        torch.manual_seed(self.settings.seed + self.steps)

    def perplexity(self) -> float:
        self.model.eval()
        self.model.loss_function = ("crossentropy", 0.0)
        total = tokens = 0
        with torch.no_grad():
            for source, target in read_pairs(self.folder / "test.npz"):
                batch = self.batch(source, target, train=False)
                batch.sort_by_src_length()
                loss, *_ = self.model(return_type="loss", **vars(batch))
                total, tokens = total + loss.item(), tokens + batch.ntokens
        return math.exp(total / tokens)

    def answer(self) -> None:
        self.model.eval()
        answers = {}
        with np.load(self.folder / "sources.npz") as arrays:
            for name in arrays.files:
                batch = self.batch(arrays[name], None, train=False)
                back = batch.sort_by_src_length()
                found, *_ = search(
                    self.model,
                    batch,
                    self.settings.max_tokens,
                    self.settings.num_beams,
                    self.settings.length_penalty,
                )
                answers[name] = found[back]
        np.savez(self.folder / "answers.npz", **answers)

    def run(self, task: str) -> str:
        kind, *argument = task.split()
        if kind == "set":
            self.steps = 0
            return f"{self.train('speed.npz'):.4f}"
        if kind == "epoch":
            return f"{self.train_epoch(int(argument[0])):.4f}"
        if kind == "perplexity":
            return f"{self.perplexity():.4f}"
        if kind == "answer":
            self.answer()
            return "done"
        return str(sum(p.numel() for p in self.model.parameters()))


def read_pairs(path: Path):
    """Sources `[B, S]` and targets `[B, T]` of the batches of a file, in order."""
    with np.load(path) as arrays:
        for number in range(len(arrays.files) // 2):
            yield arrays[f"source-{number}"], arrays[f"target-{number}"]


def main(name: str) -> None:
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    training = Training(Path(name))
    print("ready", flush=True)
    for line in sys.stdin:
        print(training.run(line.strip()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
