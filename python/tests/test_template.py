"""The template of workers: forks on request, and says how its workers end."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BOOT = "import sys; sys.path[0] = %r; from quern_runtime.__main__ import main; main()" % ROOT


class Templates(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.begin(BOOT)

    def tearDown(self):
        self.template.stdin.close()
        self.template.wait(10)
        self.template.stdout.close()
        self.directory.cleanup()

    def begin(self, boot):
        command = [sys.executable, "-E", "-c", boot, "--template", " " * 512]
        pipe = subprocess.PIPE
        self.template = subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=self.directory.name)

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def request(self, name, log="é.log"):
        with open(self.path(name), "wb") as note:
            note.truncate(4096)
        arguments = ["--listen", "unix:" + self.path(name + ".sock"), "--note", self.path(name)]
        environment = {"QUERN_WORKER_LOG": self.path(log), "QUERN_WORKER_TOKEN": "t"}
        request = {"id": name, "arguments": arguments, "environment": environment}
        self.template.stdin.write(json.dumps(request, ensure_ascii=False).encode() + b"\n")
        self.template.stdin.flush()

    def reply(self):
        return json.loads(self.template.stdout.readline())

    def test_it_forks_workers_and_says_how_each_ends(self):
        self.assertEqual(self.reply(), {"ready": True})
        self.request("a")
        self.request("b")
        pids = {reply["started"]: reply["pid"] for reply in (self.reply(), self.reply())}
        for pid in pids.values():
            self.assertEqual(os.getsid(pid), pid)
        with open("/proc/%d/cmdline" % pids["a"]) as shown:
            self.assertIn("--note\0" + self.path("a"), shown.read())
        os.kill(pids["b"], signal.SIGKILL)
        self.assertEqual(self.reply(), {"ended": "b", "signal": signal.SIGKILL})
        os.kill(pids["a"], signal.SIGKILL)
        self.assertEqual(self.reply(), {"ended": "a", "signal": signal.SIGKILL})
        self.assertTrue(os.path.exists(self.path("é.log")))

    def test_a_worker_that_cannot_begin_has_ended(self):
        self.assertEqual(self.reply(), {"ready": True})
        self.request("a", log="no-such-directory/a.log")
        self.assertEqual(self.reply(), {"ended": "a", "code": os.EX_TEMPFAIL})

    def test_workers_outlive_it(self):
        self.assertEqual(self.reply(), {"ready": True})
        self.request("a")
        pid = self.reply()["pid"]
        self.template.stdin.close()
        self.assertEqual(self.template.wait(10), 0)
        os.kill(pid, signal.SIGKILL)

    def test_it_forks_nothing_if_the_environment_starts_threads(self):
        self.template.stdin.close()
        self.template.wait(10)
        self.template.stdout.close()
        self.begin("import threading; threading.Thread(target=threading.Event().wait, daemon=True).start(); " + BOOT)
        self.assertEqual(self.template.stdout.readline(), b"")
        self.assertEqual(self.template.wait(10), os.EX_UNAVAILABLE)


if __name__ == "__main__":
    unittest.main()
