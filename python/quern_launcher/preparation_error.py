"""Why a pod cannot run a worker yet: its project is not there, or its Python environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


class PreparationError(Exception):
    """The text says why. Trying again may help, unless it `is_final`."""

    is_final = False


class FetchError(PreparationError):
    """The project cannot be fetched, or nothing can be written in the volume."""

    def __init__(self, message: str, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final


class InstallError(PreparationError):
    """The environment cannot be made because of the project, or of what it installs. `what`: the step that failed, and
    `output`: what it printed last.
    """

    is_final = True

    def __init__(self, message: str, what: str | None = None, output: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.what = what
        self.output = list(output)
        # The version of the interpreter that the packages are for, such as "3.11".
        self.python: str | None = None


def describe_failure(error: Exception) -> dict[str, Any]:
    """As JSON values, for the controller (docs/pods.md#health)."""
    step = error if isinstance(error, InstallError) else None
    return {
        "message": str(error),
        "is_final": isinstance(error, PreparationError) and error.is_final,
        "is_of_environment": step is not None,
        "step": None if step is None else step.what,
        "output": [] if step is None else step.output,
        "python": None if step is None else step.python,
    }
