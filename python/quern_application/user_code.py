"""The user's implementation files: each is loaded once, under a name that never changes, so that pickles find it."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


def load_module(project: str, path: str) -> ModuleType:
    """The module of a file of the project, which may import other modules of the project.

    Errors of the file when it is loaded pass through.
    """
    if project not in sys.path:
        sys.path.insert(0, project)
    name = "application_" + re.sub(r"\W", "_", path)
    if name not in sys.modules:
        spec: Any = importlib.util.spec_from_file_location(name, os.path.join(project, path))
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def function_of(module: ModuleType, path: str, *names: str) -> Callable[..., Any]:
    """The first of these functions that the module has. Raises AttributeError naming them."""
    for name in names:
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError("%s: function %s is not defined" % (path, " or ".join("%s()" % name for name in names)))
