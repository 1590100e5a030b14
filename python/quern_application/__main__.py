"""`python -m quern_application PLAN`: one stage of an application's pipeline, data or training, as the plan says."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import threading
import time
import traceback
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from quern_runtime.log_stream import close_standard_streams, redirect_standard_streams

from .artifacts import Artifacts
from .data_fault import DataFault

if TYPE_CHECKING:
    from typing import NoReturn

    from .data_stage import DataStage
    from .shapes import Plan
    from .train_stage import TrainStage

# The process that started this one reports every few seconds. After this long without a report, nobody waits for the
# result.
ABANDONED_S = 30


def main() -> None:
    redirect_standard_streams()
    with open(sys.argv[1], encoding="utf-8") as file:
        plan = json.load(file)
    threading.Thread(target=_leave_when_abandoned, args=(plan["alive"],), daemon=True).start()
    # A stage that a killed server had just started may still do the same work, so this one waits for it. The lock is
    # held until the process ends.
    lock = open(os.path.join(plan["artifacts"], "lock"), "wb")  # noqa: SIM115
    fcntl.flock(lock, fcntl.LOCK_EX)
    _leave(_run(plan))


def _run(plan: Plan) -> int:
    try:
        _stage_of(plan).run()
    except DataFault as fault:
        print("\nerror: %s" % fault)
        return 1
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        return 1
    print("\nCompleted on %s" % datetime.now(timezone.utc).strftime("%A, %B %d, %Y at %H:%M:%S UTC"))
    return 0


def _stage_of(plan: Plan) -> DataStage | TrainStage:
    artifacts = Artifacts(plan["artifacts"])
    if plan["stage"] == "data":
        from .data_stage import DataStage

        return DataStage(plan, artifacts)
    from .train_stage import TrainStage

    return TrainStage(plan, artifacts)


def _leave_when_abandoned(alive: str) -> None:
    # Monotonic, since the file last changed: a change of the wall clock or a suspended machine must not end the stage.
    seen, seen_at = None, time.monotonic()
    while True:
        time.sleep(5)
        try:
            touched = os.stat(alive).st_mtime_ns
        except OSError:
            touched = None
        if touched is not None and touched != seen:
            seen, seen_at = touched, time.monotonic()
        if touched is None or time.monotonic() - seen_at > ABANDONED_S:
            print("\nthe server has ended; the work resumes once the server runs again")
            _leave(1)


def _leave(code: int) -> NoReturn:
    """Skips the shutdown of the interpreter, in which libraries report errors about each other."""
    close_standard_streams()
    os._exit(code)


# Guarded: user code that starts processes by "spawn" imports this file again.
if __name__ == "__main__":
    main()
