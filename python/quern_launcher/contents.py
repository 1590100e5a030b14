"""The files of a project: their content id, as src/apis/projects/project-files.ts computes it, and whether they are
still as they were deployed. User code and Python write beside them, and may change them.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat

# {path: digest}
Files = dict[str, str]


def files_of(directory: str) -> Files:
    """All plain files below it, by their paths relative to it."""
    found: Files = {}
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                found[os.path.relpath(path, directory)] = _digest_of(path)
    return found


def content_id(files: Files) -> str:
    """The same files have the same id."""
    total = hashlib.sha256()
    # In the order of JavaScript, which compares units of UTF-16.
    for path in sorted(files, key=lambda path: path.encode("utf-16-be", "surrogatepass")):
        total.update(("%s\0%s\n" % (path, files[path])).encode("utf-8", "surrogateescape"))
    return total.hexdigest()[:24]


def changed_files(directory: str, files: Files) -> list[str]:
    """The paths of those that are missing or not as they were."""
    return [path for path, digest in files.items() if not _is_same(os.path.join(directory, path), digest)]


def _is_same(path: str, digest: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode) and _digest_of(path) == digest
    except OSError:
        return False


def save_files(file: str, files: Files) -> None:
    """The list beside a project, which is whole once it has it."""
    with open(file + ".new", "w") as target:
        json.dump(files, target)
        target.flush()
        os.fsync(target.fileno())
    os.replace(file + ".new", file)


def saved_files(file: str, project_id: str) -> Files | None:
    """None if there is no list, or if it is not that of this project: its id proves it."""
    try:
        with open(file) as source:
            files = json.load(source)
        return files if content_id(files) == project_id else None
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _digest_of(path: str) -> str:
    total = hashlib.sha256()
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(1024 * 1024), b""):
            total.update(piece)
    return total.hexdigest()
