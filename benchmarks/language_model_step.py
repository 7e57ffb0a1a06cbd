"""Compares the time of a training step of AWD-LSTM, tied and with DRILL, with PyTorch.

    python -m benchmarks.language_model_step [--batch 80] [--steps 7] [--heads tied drill]

Both sides do the same work: word, input, hidden and output dropout with masks shared by the time
steps, weight drop on the recurrent matrices, AR and TAR, cross-entropy over the whole vocabulary,
gradients, clipping by global norm, and an SGD update. The state is carried from step to step.
Steps alternate between all models, so that other processes affect all in the same way. The results
are medians. Only time is compared, since initial weights differ.
"""

import argparse
import os
import statistics
import time

from benchmarks.timing import num_cores

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

VOCABULARY, EMBEDDING, UNITS, LAYERS = 33278, 400, 1150, 3
DEPTH, LABEL_DROPOUT = 4, 0.6
CLIP, LEARNING_RATE = 0.25, 1.0


def main():
    arguments = parse_arguments()
    batch = sample_batch(arguments)
    steps = {}
    for head in arguments.heads:
        steps[f"keras_drill {head}"] = keras_step(head, arguments)
        if not arguments.without_torch:
            steps[f"PyTorch {head}"] = torch_step(head, arguments)
    print(environment(arguments))
    seconds = {name: [] for name in steps}
    for repetition in range(arguments.warmup + arguments.steps):
        for name, step in steps.items():
            start = time.perf_counter()
            loss = step(*batch)
            elapsed = time.perf_counter() - start
            if repetition >= arguments.warmup:
                seconds[name].append(elapsed)
            elif repetition == 0:
                print(f"{name:20} loss of the first step {loss:.3f}", flush=True)
    report(seconds, arguments)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=20, help="sequences per batch")
    parser.add_argument("--length", type=int, default=70, help="tokens per sequence")
    parser.add_argument("--steps", type=int, default=7, help="timed steps of each model")
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--heads", nargs="+", default=["tied", "drill"], choices=["tied", "drill"])
    parser.add_argument("--policy", default="float32", help="Keras dtype policy; PyTorch: autocast")
    parser.add_argument("--jit-compile", action="store_true", help="Keras under XLA")
    parser.add_argument("--without-torch", action="store_true")
    parser.add_argument("--threads", type=int, default=num_cores())
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def sample_batch(arguments):
    import numpy as np

    # Words as frequent as Zipf has them: the gradient of the embedding depends on it.
    random = np.random.RandomState(arguments.seed)
    frequency = 1 / np.arange(1, VOCABULARY + 1)
    ids = random.choice(
        VOCABULARY, (arguments.batch, arguments.length + 1), p=frequency / frequency.sum()
    )
    return ids[:, :-1].astype("int32"), ids[:, 1:].astype("int32")


def keras_step(head, arguments):
    import keras
    import tensorflow as tf

    import keras_drill

    tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    keras.utils.set_random_seed(arguments.seed)
    keras.config.set_dtype_policy(arguments.policy)
    backbone = keras_drill.models.AWDLSTM(
        VOCABULARY, EMBEDDING, UNITS, LAYERS, stateful=True, batch_size=arguments.batch, seed=1
    )
    label_encoder = (
        keras_drill.ResidualLabelEncoder(depth=DEPTH, activation="relu", dropout=LABEL_DROPOUT)
        if head == "drill"
        else None
    )
    output = keras_drill.OutputLayer(
        VOCABULARY, embedding=backbone.embedding, label_encoder=label_encoder
    )
    model = keras_drill.LanguageModel(backbone, output)
    optimizer = keras.optimizers.SGD(LEARNING_RATE, global_clipnorm=CLIP)
    model.compile(optimizer, jit_compile=arguments.jit_compile)
    return lambda tokens, targets: float(model.train_on_batch(tokens, targets))


def torch_step(head, arguments):
    import torch

    from benchmarks.torch_awd_lstm import TorchAWDLSTM

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    model = TorchAWDLSTM(
        VOCABULARY, EMBEDDING, UNITS, LAYERS, DEPTH if head == "drill" else 0, LABEL_DROPOUT
    )
    optimizer = torch.optim.SGD(model.parameters(), LEARNING_RATE)
    state = model.initial_state(arguments.batch)
    autocast = torch.autocast("cpu", torch.bfloat16, enabled=arguments.policy == "mixed_bfloat16")

    def step(tokens, targets):
        nonlocal state
        optimizer.zero_grad()
        with autocast:
            loss, state = model(
                torch.as_tensor(tokens).long(), torch.as_tensor(targets).long(), state
            )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        return loss.item()

    return step


def environment(arguments):
    import keras
    import tensorflow as tf

    versions = f"TensorFlow {tf.__version__}, Keras {keras.__version__}"
    if not arguments.without_torch:
        import torch

        versions += f", PyTorch {torch.__version__}"
    return (
        f"{versions}, {arguments.threads} threads, {arguments.policy}, seed {arguments.seed}, "
        f"{arguments.steps} timed steps after {arguments.warmup}\n"
        f"AWD-LSTM {LAYERS} x {UNITS}, embeddings {EMBEDDING}, V={VOCABULARY}, batch "
        f"{arguments.batch} x {arguments.length}, DRILL depth {DEPTH} dropout {LABEL_DROPOUT}"
    )


def report(seconds, arguments):
    tokens = arguments.batch * arguments.length
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    print(f"\n{'':20} {'median s':>9} {'min s':>9} {'max s':>9} {'tokens/s':>9}")
    for name, values in seconds.items():
        print(
            f"{name:20} {medians[name]:9.3f} {min(values):9.3f} {max(values):9.3f} "
            f"{tokens / medians[name]:9.0f}"
        )
    for head in arguments.heads:
        if f"PyTorch {head}" in medians:
            ratio = medians[f"PyTorch {head}"] / medians[f"keras_drill {head}"]
            print(f"{head}: {ratio:.2f} times PyTorch's throughput")
    if {"tied", "drill"} <= set(arguments.heads):
        for side in ("keras_drill", "PyTorch"):
            if f"{side} tied" in medians:
                ratio = medians[f"{side} drill"] / medians[f"{side} tied"]
                print(f"{side}: a DRILL step takes {ratio:.2f} times a tied step")


if __name__ == "__main__":
    main()
