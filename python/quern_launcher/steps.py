"""Commands that make an environment: their output goes to the pod's log, and its end into the error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import deque
from typing import TYPE_CHECKING

from .environment_id import InstallError
from .hidden import hide

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LAST_LINES = 15


def run_step(what: str, command: Sequence[str], directory: str, environment: Mapping[str, str]) -> None:
    """Raises InstallError if it fails. Whatever ends the wait ends the command, with the processes that it started."""
    print("quern: installing: %s" % what, file=sys.stderr, flush=True)
    process = subprocess.Popen(
        command,
        cwd=directory,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    last: deque[str] = deque(maxlen=LAST_LINES)
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
        raise InstallError("%s failed:\n%s" % (what, "\n".join(last)))
