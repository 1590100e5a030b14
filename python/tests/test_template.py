"""The template of workers: forks on request, and says how its workers end."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BOOT = "import sys; sys.path[0] = %r; from quern_runtime.__main__ import main; main()" % ROOT


class Templates(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.begin(BOOT)

    def tearDown(self):
        self.leave()
        self.directory.cleanup()

    def leave(self):
        self.lines.close()
        self.socket.close()
        self.template.wait(10)

    def begin(self, boot):
        self.socket, theirs = socket.socketpair()
        self.lines = self.socket.makefile("rb")
        # The template's descriptors 3 and 4; it takes one socket as well as two.
        shell = 'exec 4<&%d 3<&4; exec "$@"' % theirs.fileno()
        command = ["sh", "-c", shell, "sh", sys.executable, "-E", "-c", boot, "--template", " " * 512]
        fds = (theirs.fileno(),)
        self.template = subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd=self.directory.name, pass_fds=fds)
        theirs.close()

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def request(self, name, log="é.log"):
        with open(self.path(name), "wb") as note:
            note.truncate(4096)
        arguments = ["--listen", "unix:" + self.path(name + ".sock"), "--note", self.path(name)]
        environment = {"QUERN_WORKER_LOG": self.path(log), "QUERN_WORKER_TOKEN": "t"}
        request = {"id": name, "arguments": arguments, "environment": environment}
        self.socket.sendall(json.dumps(request, ensure_ascii=False).encode() + b"\n")

    def read(self, path):
        with open(path) as file:
            return file.read()

    def reply(self):
        return json.loads(self.lines.readline())

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
        self.leave()
        self.assertEqual(self.template.returncode, 0)
        os.kill(pid, signal.SIGKILL)

    def test_it_forks_nothing_if_the_environment_starts_threads_or_processes(self):
        self.assertEqual(self.reply(), {"ready": True})
        self.leave()
        thread = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start(); "
        process = "import subprocess; other = subprocess.Popen(['sleep', '5']); "
        for company in (thread, process):
            self.begin(company + BOOT)
            self.assertEqual(self.lines.readline(), b"")
            self.assertEqual(self.template.wait(10), os.EX_UNAVAILABLE)
            self.leave()
        self.begin(BOOT)
        self.assertEqual(self.reply(), {"ready": True})

    def test_the_end_of_another_child_is_no_worker_s(self):
        self.assertEqual(self.reply(), {"ready": True})
        self.leave()
        # It comes after the template looked for company.
        late = "import gc, subprocess; froze = gc.freeze; gc.freeze = lambda: (froze(), subprocess.Popen(['sleep', '0.5'])); "
        self.begin(late + BOOT)
        self.assertEqual(self.reply(), {"ready": True})
        self.request("a")
        pid = self.reply()["pid"]
        children = "/proc/%d/task/%d/children" % (self.template.pid, self.template.pid)
        until = time.monotonic() + 10
        while self.read(children).split() != [str(pid)] and time.monotonic() < until:
            time.sleep(0.01)
        self.assertEqual(self.read(children).split(), [str(pid)])
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(self.reply(), {"ended": "a", "signal": signal.SIGKILL})


if __name__ == "__main__":
    unittest.main()
