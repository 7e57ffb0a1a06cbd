"""`keras-drill serve`."""

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from keras_drill.workbench.cli.arguments import number, whole_number
from keras_drill.workbench.tasks.errors import ConfigError, RunError

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "serve",
        help="serve exported models for development, with a web page, REST and gRPC",
        description=(
            "Starts a development server for the models in a folder. The server has the REST and\n"
            "gRPC interfaces of TensorFlow Serving, and a web page to try the models. It loads\n"
            "new versions automatically. For production use TensorFlow Serving."
        ),
        epilog=(
            "Examples:\n"
            "  keras-drill serve saved_models\n"
            "  keras-drill serve saved_models --port 0 --no-grpc\n"
            "  keras-drill serve saved_models --label news:stable=3 --no-batching"
        ),
    )
    parser.add_argument(
        "folder",
        metavar="SAVED_MODELS",
        help="folder of exported models, with a subfolder NAME/VERSION/ for each version",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on; any address but %(default)s gives other machines access, "
        "without a password",
    )
    ports = whole_number(0, 65535)
    parser.add_argument(
        "--port",
        type=ports,
        default=8501,
        metavar="N",
        help="port of the web page and REST; 0: any free port (default: %(default)s)",
    )
    parser.add_argument(
        "--grpc-port",
        type=ports,
        default=8500,
        metavar="N",
        help="port of gRPC; 0: any free port (default: %(default)s)",
    )
    parser.add_argument("--no-grpc", action="store_true", help="do not serve gRPC")
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="further host name by which browsers may reach the server; may be given several times",
    )
    parser.add_argument(
        "--label",
        action="append",
        default=[],
        type=_label,
        metavar="NAME:LABEL=VERSION",
        help="label by which requests can select this version; may be given several times",
    )
    _add_limits(parser)
    return parser


def _add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("batches and limits")
    group.add_argument("--no-batching", action="store_true", help="do not batch requests")
    group.add_argument(
        "--max-batch-size",
        type=whole_number(1, 10_000),
        default=32,
        metavar="N",
        help="maximum number of texts in a batch (default: %(default)s)",
    )
    group.add_argument(
        "--batch-delay",
        type=number(above=-1e-9, at_most=1000),
        default=5.0,
        metavar="MS",
        help="milliseconds that a request waits for others to form a batch (default: %(default)g)",
    )
    group.add_argument(
        "--max-request-bytes",
        type=whole_number(1),
        default=4 * 1024 * 1024,
        metavar="N",
        help="maximum number of bytes of a request (default: %(default)s)",
    )
    group.add_argument(
        "--max-rows",
        type=whole_number(1),
        default=1024,
        metavar="N",
        help="maximum number of texts in a request (default: %(default)s)",
    )
    group.add_argument(
        "--max-text-bytes",
        type=whole_number(1),
        default=64 * 1024,
        metavar="N",
        help="maximum number of bytes of a text (default: %(default)s)",
    )
    group.add_argument(
        "--timeout",
        type=number(above=0, at_most=86_400),
        default=60.0,
        metavar="SECONDS",
        help="maximum duration of a request in seconds (default: %(default)g)",
    )


def run(args: argparse.Namespace) -> int:
    base = _base_folder(args.folder)

    from keras_drill.workbench.cli.streams import import_tensorflow_alone

    import_tensorflow_alone()
    from keras_drill.workbench.serving import BatchingOptions, Limits, ServerOptions, serve

    labels: dict[str, dict[str, int]] = {}
    for model, label, version in args.label:
        labels.setdefault(model, {})[label] = version
    options = ServerOptions(
        base=base,
        host=args.host,
        port=args.port,
        grpc_port=None if args.no_grpc else args.grpc_port,
        allowed_hosts=tuple(args.allow_host),
        batching=BatchingOptions(
            max_batch_size=1 if args.no_batching else args.max_batch_size,
            delay_seconds=args.batch_delay / 1000,
        ),
        limits=Limits(
            request_bytes=args.max_request_bytes,
            rows=args.max_rows,
            text_bytes=args.max_text_bytes,
            seconds=args.timeout,
        ),
        labels=labels,
    )
    try:
        serve(options, _announce)
    except OSError as error:
        raise RunError(
            f"cannot listen on {args.host}: {error.strerror or error}; choose other ports with "
            "--port and --grpc-port, or another --host"
        ) from error
    return 0


def _announce(server: Any) -> None:
    host = server.options.host
    shown = f"[{host}]" if ":" in host else host
    lines = [
        "This is a development server; for production use TensorFlow Serving.",
        f"page  http://{shown}:{server.port}/",
        f"REST  http://{shown}:{server.port}/v1/models/NAME",
    ]
    if server.grpc_port is not None:
        lines.append(f"gRPC  {shown}:{server.grpc_port}")
    if host not in _LOOPBACK:
        lines.append("Everyone who can reach this machine can use the server without a password.")
    lines.append("Press Ctrl-C to stop the server.")
    print("\n".join(lines), file=sys.stderr, flush=True)


def _base_folder(folder: str) -> Path:
    base = Path(folder)
    if not base.is_dir():
        what = "is a file" if base.exists() else "does not exist"
        raise RunError(
            f"SAVED_MODELS must be the folder of exported models. Received: {folder}, which {what}"
        )
    for path in base.iterdir():
        if path.name.isdigit() and (path / "saved_model.pb").exists():
            raise ConfigError(
                f"{folder} is the folder of one model; give the folder that contains it: "
                f"{base.resolve().parent}"
            )
    if (base / "saved_model.pb").exists():
        raise ConfigError(
            f"{folder} is one version of a model; give the folder of models, which contains it as "
            "NAME/VERSION"
        )
    return base


def _label(text: str) -> tuple[str, str, int]:
    found = re.fullmatch(r"([^/:]+):([^/:=]+)=(\d{1,18})", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"must be NAME:LABEL=VERSION. Received: {text!r}")
    return found[1], found[2], int(found[3])
