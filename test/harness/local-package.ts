/** A package with a build of its own: nothing is downloaded, and the build writes into the directory as setuptools does. */

export const PYPROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n';

/** A build backend without setuptools, for `tiny_quern.py` in the directory or in its `source`. */
export const BACKEND = `
import os, zipfile

SOURCE = "source" if os.path.isdir("source") else "."

def _wheel(directory, files):
    os.makedirs("build", exist_ok=True)
    name = "tiny_quern-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as wheel:
        for file, text in files.items(): wheel.writestr(file, text)
        wheel.writestr("tiny_quern-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny-quern\\nVersion: 1.0\\n")
        wheel.writestr("tiny_quern-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("tiny_quern-1.0.dist-info/RECORD", "")
    return name

def build_wheel(directory, config_settings=None, metadata_directory=None):
    return _wheel(directory, {"tiny_quern.py": open(os.path.join(SOURCE, "tiny_quern.py")).read()})

def build_editable(directory, config_settings=None, metadata_directory=None):
    return _wheel(directory, {"tiny_quern.pth": os.path.abspath(SOURCE)})
`;
