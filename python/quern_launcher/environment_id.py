"""The identity of a Python environment: all that its content depends on
(docs/contract/predictor.md#environment-identity).

Where src/engine/environments/ reads which local files a requirement names, this is coarser: a requirement that may name
a local path ties the environment to the whole project. Then another version installs again, at worst in vain.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from typing import Any

from .preparation_error import InstallError

SCRIPT = "dependencies.sh"
REQUIREMENTS = ("requirements.txt", os.path.join(".quern", "requirements.txt"))
REQUIREMENTS_BYTES_MAX = 1024 * 1024
_FILE_OPTION = re.compile(r"""^(?:-r|--requirement|-c|--constraint)[ =]?\s*("[^"]*"|'[^']*'|\S+)""")
_ARCHIVE = re.compile(r"\.(whl|zip|tar|tar\.\w+|tgz|tbz|txz)$", re.IGNORECASE)
_REMOTE = re.compile(r"^(?!file:)[a-z+]+://", re.IGNORECASE)

_FACTS = """
import json, site, sys, sysconfig
from importlib.util import find_spec
print(json.dumps({
    "executable": sys.executable,
    "version": sys.version,
    "platform": sysconfig.get_platform(),
    "sitePackages": list(dict.fromkeys(site.getsitepackages() + [sysconfig.get_paths()["purelib"]])),
    "virtualEnv": sys.prefix if sys.prefix != sys.base_prefix else None,
    "hasPip": find_spec("pip") is not None,
}))
"""


def interpreter_facts(python: str) -> dict[str, Any]:
    """What an environment of this interpreter depends on. Raises InstallError."""
    try:
        done = subprocess.run([python, "-c", _FACTS], stdout=subprocess.PIPE, timeout=60, check=True)
        facts: dict[str, Any] = json.loads(done.stdout)
        return facts
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise InstallError("%s does not run: %s" % (python, error)) from None


def requirements_of(project: str) -> list[str]:
    """The user's requirements, and those that Quern adds to a project that it generated."""
    return [path for path in (os.path.join(project, name) for name in REQUIREMENTS) if os.path.exists(path)]


def requires_nothing(project: str) -> bool:
    """Whether the interpreter and its packages are enough."""
    return not requirements_of(project) and not os.path.exists(os.path.join(project, SCRIPT))


def environment_id(project: str, root: str, facts: dict[str, Any]) -> tuple[str, bool]:
    """The id, and whether requirements may name local paths. `root`: an environment that is moved does not run."""
    total = hashlib.sha256(("%s\0%s\0" % (json.dumps(facts), root)).encode())
    seen: set[str] = set()
    is_local = False
    waiting = requirements_of(project)
    while waiting:
        path = waiting.pop()
        if path in seen or not os.path.isfile(path):
            continue
        seen.add(path)
        text = _text_of(path)
        total.update(("%s\0%s\0" % (os.path.relpath(path, project), text)).encode("utf-8", "replace"))
        files, may_be_local = _named_by(text)
        waiting += [os.path.join(os.path.dirname(path), name) for name in files if not _REMOTE.match(name)]
        is_local = is_local or may_be_local
    script = os.path.join(project, SCRIPT)
    if os.path.exists(script):
        with open(script, "rb") as file:
            total.update(SCRIPT.encode() + b"\0" + file.read())
    if is_local:
        total.update(os.path.basename(project).encode())
    return total.hexdigest()[:24], is_local


def _text_of(path: str) -> str:
    size = os.path.getsize(path)
    if size > REQUIREMENTS_BYTES_MAX:
        raise InstallError("%s has %d bytes; requirements have at most %d" % (path, size, REQUIREMENTS_BYTES_MAX))
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _named_by(text: str) -> tuple[list[str], bool]:
    """The files that requirements include, and whether any other may be a local path."""
    files = []
    is_local = False
    for line in re.sub(r"\\\r?\n", "", text).splitlines():
        line = re.split(r"(?:^|\s)#", line, maxsplit=1)[0].strip()
        included = _FILE_OPTION.match(line)
        if included is not None:
            files.append(included.group(1).strip("\"'"))
        elif not is_local:
            is_local = any(_may_be_local(word) for word in re.split(r"[\s=]+", line))
    return files, is_local


def _may_be_local(word: str) -> bool:
    word = re.split(r"[#;\[]", word.strip("\"'"), maxsplit=1)[0]
    if word.startswith(("-e", "-f")):
        word = word[2:]
    if _REMOTE.match(word):
        return False
    return word in (".", "..") or word.startswith("file:") or "/" in word or _ARCHIVE.search(word) is not None
