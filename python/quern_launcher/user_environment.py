"""The variables of user code: those of the container, without Quern's own, and the project's `.env`."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .environment import Interpreter
    from .settings import Settings

# As `parseEnv` of Node reads it: quoted values may have several lines, others end at a comment.
_LINE = re.compile(r"""^[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*=[ \t]*("[^"]*"|'[^']*'|`[^`]*`|[^\n#]*)""", re.MULTILINE)


def without_own(environment: Mapping[str, str]) -> dict[str, str]:
    """Also without those that Kubernetes makes for a Service that is called quern."""
    return {name: value for name, value in environment.items() if not name.startswith("QUERN_")}


def user_environment(
    settings: Settings, project: str, interpreter: Interpreter, environment: Mapping[str, str]
) -> dict[str, str]:
    """What the worker starts with. `environment` is that of the container."""
    roots = [project]
    if settings.python_path is not None:
        roots.append(os.path.join(project, settings.python_path))
    own = {"PYTHONPATH": os.pathsep.join(roots), "PYTHONUNBUFFERED": "1"}
    variables = interpreter.activated({**without_own(environment), **_dot_env_of(project), **own})
    if settings.api_url is not None:
        variables.update(QUERN_API_URL=settings.api_url, **_without_proxy(variables, settings.api_url))
    return variables


def _dot_env_of(project: str) -> dict[str, str]:
    try:
        with open(os.path.join(project, ".env"), encoding="utf-8", errors="replace") as file:
            return parse_env(file.read())
    except FileNotFoundError:
        return {}


def parse_env(text: str) -> dict[str, str]:
    """The variables of a `.env` file."""
    variables = {}
    for name, value in _LINE.findall(text.replace("\r\n", "\n")):
        if value[:1] == '"' and len(value) > 1:
            value = value[1:-1].replace("\\n", "\n")
        elif value[:1] in ("'", "`") and len(value) > 1:
            value = value[1:-1]
        else:
            value = value.strip()
        variables[name] = value
    return variables


def _without_proxy(variables: Mapping[str, str], url: str) -> dict[str, str]:
    """A proxy would learn the capability in the address."""
    direct = variables.get("no_proxy") or variables.get("NO_PROXY") or ""
    if direct.startswith("*"):
        return {}
    direct = ",".join(filter(None, (direct, urlsplit(url).hostname)))
    return {"no_proxy": direct, "NO_PROXY": direct}
