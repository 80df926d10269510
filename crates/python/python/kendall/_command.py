"""The command kendall, which measures in a process of its own."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kendall._kendall import KendallError, Unstable

UNSTABLE = 3
"""The exit status for a station without a steady state."""


def command() -> str:
    """The path of the command kendall: that of this package, or the first of PATH; $KENDALL goes before both."""
    for found in (os.environ.get("KENDALL"), _unpacked(), shutil.which("kendall")):
        if found:
            return found
    raise KendallError(
        "the command kendall, which measures in a process of its own, is not there: install it so that PATH finds it, or let "
        "$KENDALL name it"
    )


def _unpacked() -> str | None:
    """The command that the package contains, compressed: it is unpacked into the user's cache once for each version."""
    packed = Path(__file__).parent / "bin" / "kendall.xz"
    if not packed.exists():
        return None
    content = packed.read_bytes()
    name = hashlib.sha256(content).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kendall" / name
    path = cache / "kendall"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Under another name until it is whole.
        with tempfile.NamedTemporaryFile(dir=cache, delete=False) as unpacked:
            unpacked.write(lzma.decompress(content))
        os.chmod(unpacked.name, 0o755)
        os.replace(unpacked.name, path)
    return str(path)


def call(words: Sequence[str], *, progress: bool = False) -> str:
    """Runs the command and returns its standard output; `progress` shows its standard error as it comes.

    Raises KendallError with the sentence that the command prints, and Unstable where a station has no steady state.
    """
    process = subprocess.Popen(
        [command(), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if progress else subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    try:
        output, said = process.communicate()
    except BaseException:
        # Ctrl-C reaches the command, too, which then ends in order.
        process.wait(timeout=10)
        raise
    if process.returncode:
        words_said = (said or "see above").strip().removeprefix("kendall: ").removeprefix("error: ")
        raise (Unstable if process.returncode == UNSTABLE else KendallError)(words_said)
    return output


def call_json(words: Sequence[str], *, progress: bool = False) -> Any:
    """Runs the command with --json, and returns what it prints."""
    return json.loads(call([*words, "--json"], progress=progress))


def main() -> None:
    """The command kendall of the package."""
    path = command()
    os.execv(path, [path, *sys.argv[1:]])
