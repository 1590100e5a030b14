"""Modules that are imported late: by those that need them, and never from the project."""

import os
import subprocess
import sys
import tempfile
import threading
import unittest

from quern_runtime.late import late

PYTHON = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run(code):
    """The output of a Python of its own, which has imported what a worker imports at its start."""
    code = "import sys; sys.path[0] = %r; import quern_runtime.__main__\n%s" % (PYTHON, code)
    return subprocess.run([sys.executable, "-E", "-c", code], check=True, capture_output=True, text=True).stdout.split()


class Late(unittest.TestCase):
    def test_a_worker_starts_without_asyncio(self):
        self.assertEqual(run("print('asyncio' in sys.modules)"), ["False"])

    def test_no_file_of_the_project_shadows_what_is_imported(self):
        with tempfile.TemporaryDirectory() as project:
            for name in ("asyncio", "queue", "selectors"):
                with open(os.path.join(project, name + ".py"), "w") as file:
                    file.write("raise AssertionError('of the project')\n")
            code = "sys.path.insert(0, %r)\nfrom quern_runtime.late import late\n" % project
            code += "print(hasattr(late('asyncio'), 'new_event_loop'), sys.path[0] == %r)" % project
            self.assertEqual(run(code), ["True", "True"])

    def test_the_path_stays_what_it_is_whoever_imports(self):
        before = list(sys.path)
        names = ("wave", "colorsys", "sched", "graphlib") * 5
        threads = [threading.Thread(target=late, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sys.path, before)
