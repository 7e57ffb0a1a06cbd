"""Computes digests of files, to detect changes of files outside the artifact store."""

import hashlib
from pathlib import Path


def fingerprint(*paths: Path) -> str:
    """Returns the hexadecimal digest of files and of all files in folders.

    Missing files are ignored.
    """
    digest = hashlib.sha256()
    for path in paths:
        folder = path if path.is_dir() else path.parent
        files = path.rglob("*") if path.is_dir() else [path]
        for file in sorted(file for file in files if file.is_file()):
            digest.update(f"{file.relative_to(folder)} {file.stat().st_size}\0".encode())
            content = hashlib.sha256()
            with open(file, "rb") as stream:
                while chunk := stream.read(1 << 20):
                    content.update(chunk)
            digest.update(content.digest())
    return digest.hexdigest()
