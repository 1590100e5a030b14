"""The user's implementation files: each loaded once, under a name that does not change, so that pickles find it again."""

import importlib.util
import os
import re
import sys


def load_module(project, path):
    """The module of a file of the project; modules of the project can be imported by it."""
    if project not in sys.path:
        sys.path.insert(0, project)
    name = "application_" + re.sub(r"\W", "_", path)
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, os.path.join(project, path))
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def function_of(module, path, *names):
    """The first of these functions that the module has. Raises AttributeError naming them."""
    for name in names:
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError("%s: function %s is not defined" % (path, " or ".join("%s()" % name for name in names)))
