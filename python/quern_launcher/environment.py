"""Makes the Python environment of a project, as src/engine/environments/create-environment.ts does: it is made empty,
`dependencies.sh` runs with it active, then the requirements are installed. The mark that it is whole comes last.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING, NamedTuple

from .environment_id import (
    SCRIPT,
    environment_id,
    interpreter_facts,
    requirements_of,
    requires_nothing,
)
from .locks import building
from .preparation_error import FetchError, InstallError
from .steps import run_step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from .settings import Settings

COMPLETE = ".quern-complete"
# A copy of the project: `dependencies.sh` and builds write into it, and `-e` refers to it.
SOURCES = "project"
SYNC_S = 60


class Interpreter(NamedTuple):
    """Runs user code; `virtual_env` is None if it belongs to none."""

    python: str
    bin: str
    virtual_env: str | None

    def activated(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The variables with which its commands are the ones that are found."""
        active = {**environment, "PATH": os.pathsep.join(filter(None, (self.bin, environment.get("PATH"))))}
        if self.virtual_env is not None:
            active["VIRTUAL_ENV"] = self.virtual_env
        return active


def prepare_environment(
    settings: Settings, project: str, variables: Mapping[str, str], on_wait: Callable[[str], None]
) -> Interpreter:
    """Makes the environment, or finds it. Raises PreparationError. `variables`: those of the pod, without Quern's."""
    facts = interpreter_facts(settings.python)
    if requires_nothing(project):
        return Interpreter(settings.python, os.path.dirname(facts["executable"]), facts["virtualEnv"])
    root = os.path.join(settings.cache, "environments")
    name, is_local = environment_id(project, root, facts)
    directory = os.path.join(root, name)
    made = Interpreter(os.path.join(directory, "bin", "python"), os.path.join(directory, "bin"), directory)
    try:
        os.makedirs(root, exist_ok=True)
        with building(directory, lambda: on_wait("another pod of this node installs the same packages")):
            if not os.path.exists(os.path.join(directory, COMPLETE)):
                _make(made, project, facts, is_local, _with_caches(settings, variables))
    except InstallError as error:
        error.python = ".".join(facts["version"].split(".")[:2])
        raise
    except (OSError, subprocess.SubprocessError) as error:
        raise FetchError("the Python environment cannot be made below %s: %s" % (root, error)) from None
    return made


def _with_caches(settings: Settings, variables: Mapping[str, str]) -> dict[str, str]:
    """Installers write below the volume: the root file system may be read-only."""
    caches = {name: os.path.join(settings.cache, name) for name in ("pip", "uv")}
    return {"PIP_CACHE_DIR": caches["pip"], "UV_CACHE_DIR": caches["uv"], **variables}


def _make(made: Interpreter, project: str, facts: dict[str, Any], is_local: bool, variables: Mapping[str, str]) -> None:
    directory = str(made.virtual_env)
    shutil.rmtree(directory, ignore_errors=True)
    environment = made.activated(variables)
    has_uv = shutil.which("uv", path=environment["PATH"]) is not None
    _make_empty(made, facts, has_uv, project, environment)
    sources = project
    if is_local or os.path.exists(os.path.join(project, SCRIPT)):
        sources = os.path.join(directory, SOURCES)
        shutil.copytree(project, sources)
    if os.path.exists(os.path.join(sources, SCRIPT)):
        run_step(SCRIPT, ["bash", "-e", os.path.join(sources, SCRIPT)], sources, environment)
    requirements = requirements_of(sources)
    if requirements:
        pip = [made.python, "-m", "pip", "install", "--disable-pip-version-check"]
        install = ["uv", "pip", "install", "--python", made.python] if has_uv else pip
        files = [word for file in requirements for word in ("-r", os.path.relpath(file, sources))]
        run_step("requirements.txt", [*install, *files], sources, environment)
    _sync(directory)
    with open(os.path.join(directory, COMPLETE), "w"):
        pass


def _make_empty(
    made: Interpreter, facts: dict[str, Any], has_uv: bool, project: str, environment: Mapping[str, str]
) -> None:
    """With nothing but a `pip` that runs the interpreter's, and with the interpreter's packages visible."""
    directory, python = str(made.virtual_env), facts["executable"]
    without_pip = ["--without-pip"] if facts["hasPip"] else []
    if has_uv:
        run_step("uv venv", ["uv", "venv", "--quiet", "--python", python, directory], project, environment)
    else:
        run_step("venv", [python, "-m", "venv", *without_pip, directory], project, environment)
    if facts["hasPip"] or has_uv:
        for name in ("pip", "pip3"):
            path = os.path.join(made.bin, name)
            with open(path, "w") as file:
                file.write('#!/bin/sh\nexec %s -m pip "$@"\n' % shlex.quote(made.python))
            os.chmod(path, 0o755)
    where = "import sysconfig;print(sysconfig.get_paths()['purelib'])"
    packages = subprocess.run([made.python, "-c", where], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
    with open(os.path.join(packages, "quern-interpreter.pth"), "w") as file:
        file.write("\n".join(facts["sitePackages"]) + "\n")


def _sync(directory: str) -> None:
    """The mark must not survive a power failure that empties the files."""
    try:
        subprocess.run(["sync", "-f", directory], timeout=SYNC_S, check=False)
    except (OSError, subprocess.SubprocessError):
        # The system has no such command, or the disk is busy for longer.
        pass
