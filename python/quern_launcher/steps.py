"""Commands that make an environment: their output goes to the pod's log, and its end into the error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import deque
from typing import TYPE_CHECKING

from .hidden import hide
from .preparation_error import InstallError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LAST_LINES = 15
# Of the output, for the controller. The health server sends it at once.
OUTPUT_CHARS = 8_000


def run_step(what: str, command: Sequence[str], directory: str, environment: Mapping[str, str]) -> None:
    """Raises InstallError if it fails. Whatever ends the wait ends the command, with the processes that it started."""
    print("quern: installing: %s" % what, file=sys.stderr, flush=True)
    try:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (FileNotFoundError, PermissionError) as error:
        raise InstallError("%s failed: %s" % (what, error)) from None
    last: deque[str] = deque(maxlen=100)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            text = hide(line.decode("utf-8", "replace"))
            sys.stdout.buffer.write(text.encode())
            sys.stdout.buffer.flush()
            last.append(text[:1000].rstrip())
        code = process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if code != 0:
        words = "\n".join(list(last)[-LAST_LINES:])
        raise InstallError("%s failed:\n%s" % (what, words), what, _end_of(last))


def _end_of(lines: deque[str]) -> list[str]:
    """The last lines that together are not longer than OUTPUT_CHARS."""
    chars = 0
    end: list[str] = []
    for line in reversed(lines):
        chars += len(line) + 1
        if chars > OUTPUT_CHARS:
            break
        end.append(line)
    return end[::-1]
