"""The cure for a missing module that user code imports."""

from __future__ import annotations

import importlib.util
import sys

# The names of packages whose modules have another name.
PACKAGES = {
    "Crypto": "pycryptodome",
    "PIL": "Pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "jwt": "PyJWT",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}


def advice(error: BaseException) -> str | None:
    """A sentence for the user; None if the error is not a missing module."""
    try:
        if not isinstance(error, ModuleNotFoundError) or not isinstance(error.name, str):
            return None
        return _advice(error.name)
    except BaseException:
        # An exception of the user's whose attributes misbehave.
        return None


def _advice(name: str) -> str:
    top = name.split(".")[0]
    package = PACKAGES.get(top)
    if top != name and _is_installed(top):
        return (
            "the %s that is installed has no such module; in requirements.txt, require the version that your code was "
            "written for" % (package or top)
        )
    if package is not None:
        return "add it to requirements.txt, where it is called %s" % package
    return "add it to requirements.txt, or to the project if it is a file of yours"


def _is_installed(top: str) -> bool:
    """A package of its own: several distributions share a namespace such as `google`."""
    module = sys.modules.get(top)
    spec = importlib.util.find_spec(top) if module is None else module.__spec__
    return spec is not None and spec.origin is not None
