"""Children that user code forks. A child is a copy of the worker that must not act as one.

It answers no caller, writes no note, holds none of the worker's sockets, and changes nothing that it shares with its
parent: the note's memory, the event loop's epoll. If it comes back out of user code, by a return or an exception, it
ends there.
"""

from __future__ import annotations

import os
import select
import sys
import traceback
from typing import TYPE_CHECKING

from .leaving import exit_code
from .log_stream import close_standard_streams

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from typing import NoReturn

is_child = False
# The event loop that ran in the thread that forks: Python 3.12 and later forget it in the child before we can ask.
_loop: asyncio.AbstractEventLoop | None = None


def watch_forks(in_child: Callable[[], None]) -> None:
    """`in_child` is called in each child, before user code continues there."""

    def after() -> None:
        global is_child
        is_child = True
        _part_from(_loop)
        in_child()

    os.register_at_fork(before=_before, after_in_child=after)


def leave_if_child(error: BaseException | None = None) -> None:
    """Call this after user code has returned or raised."""
    if is_child:
        _leave(error)


def _before() -> None:
    global _loop
    # Without the module, no loop runs.
    events = sys.modules.get("asyncio.events")
    _loop = None if events is None else events._get_running_loop()


def _part_from(loop: asyncio.AbstractEventLoop | None) -> None:
    """The child's copy of the loop keeps neither the epoll, which is the parent's too, nor the tasks of others."""
    selector = getattr(loop, "_selector", None)
    if selector is None:
        return
    try:
        fresh = select.epoll()
        os.dup2(fresh.fileno(), selector.fileno(), inheritable=False)
        fresh.close()
    except (AttributeError, OSError, ValueError):
        pass
    for others in (getattr(loop, "_ready", None), getattr(loop, "_scheduled", None)):
        if others is not None:
            others.clear()


def _leave(error: BaseException | None) -> NoReturn:
    """Writes the child's own output, but not its copies of the parent's buffers."""
    code = 0
    try:
        if isinstance(error, SystemExit):
            code = exit_code(error)
        elif error is not None:
            code = 1
            print("a process that predict() had forked failed", file=sys.stderr)
            traceback.print_exception(type(error), error, error.__traceback__)
        close_standard_streams()
    finally:
        os._exit(code)
