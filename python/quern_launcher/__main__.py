"""`python3 -m quern_launcher`: the first process of a worker's pod (docs/pods.md).

It fetches the project, makes its Python environment, and keeps a worker running. Settings come from variables and from
the files of a Secret.
"""

from __future__ import annotations

import ctypes
import os
import random
import signal
import sys
import time
from typing import TYPE_CHECKING

from .environment import prepare_environment
from .facts import Facts
from .fetch import fetch_project
from .health import Health
from .preparation_error import PreparationError
from .settings import SettingsError, read_settings
from .supervise import Supervisor
from .user_environment import user_environment, without_own

if TYPE_CHECKING:
    from typing import NoReturn

    from .environment import Interpreter
    from .settings import Settings

RETRY_FIRST_S = 0.5
RETRY_MAX_S = 30.0
PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Returns at the planned end of the pod."""
    environment = dict(os.environ)
    try:
        settings = read_settings(environment, sys.executable)
        os.makedirs(settings.run, mode=0o700, exist_ok=True)
        facts = Facts(settings.run)
        Health(settings, facts).start()
    except (SettingsError, OSError) as error:
        print("quern: %s" % error, file=sys.stderr)
        sys.exit(os.EX_CONFIG)
    signal.signal(signal.SIGTERM, _leave)
    _adopt_orphans()
    _ensure_home(environment, settings)
    project, interpreter = _prepare(settings, facts, environment)
    facts.prepared()
    variables = user_environment(settings, project, interpreter, environment)
    Supervisor(settings, facts).run(interpreter.python, project, variables)


def _prepare(settings: Settings, facts: Facts, environment: dict[str, str]) -> tuple[str, Interpreter]:
    """Tries until it succeeds: a server that is away comes back, and kubelet ends a pod that takes too long."""
    pause_s = RETRY_FIRST_S
    while True:
        try:
            facts.enter("fetching")
            project = fetch_project(settings, lambda reason: facts.enter("fetching", reason))
            facts.enter("installing")
            variables = without_own(environment)
            return project, prepare_environment(
                settings, project, variables, lambda reason: facts.enter("installing", reason)
            )
        except (PreparationError, SettingsError) as error:
            facts.fail(error)
        # Pods that start together do not come back together.
        time.sleep(pause_s * random.uniform(0.5, 1.0))
        pause_s = min(RETRY_MAX_S, 2 * pause_s)


def _leave(*_: object) -> NoReturn:
    """Before there is a worker, nothing has to drain. A command that runs ends with the exception."""
    sys.exit(0)


def _adopt_orphans() -> None:
    """Also where another process is the container's first."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (AttributeError, OSError):
        # This is not Linux.
        pass


def _ensure_home(environment: dict[str, str], settings: Settings) -> None:
    """Libraries keep files there; the root file system may be read-only."""
    home = environment.get("HOME", "")
    if not os.access(home, os.W_OK):
        environment["HOME"] = os.path.join(settings.run, "home")
        os.makedirs(environment["HOME"], exist_ok=True)


if __name__ == "__main__":
    main()
