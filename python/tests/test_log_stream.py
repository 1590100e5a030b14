"""Logs of workers: whole lines, bounded on disk and in length, and they report what was dropped."""

import os
import re
import tempfile
import unittest
from unittest import mock

from quern_runtime import capability, log_file
from quern_runtime.log_file import LogFile, dropped_with
from quern_runtime.log_stream import LINE_BYTES_MAX, StampedLines

MIB = 1024 * 1024


class Bounds(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.directory.name, "w.log")
        self.descriptor = os.open(self.path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        self.log = LogFile(self.path)
        self.stream = StampedLines(self.descriptor, self.log)

    def tearDown(self):
        os.close(self.descriptor)
        self.directory.cleanup()

    def read(self, name="w.log"):
        with open(os.path.join(self.directory.name, name), encoding="utf-8") as file:
            return file.read()

    def test_the_capability_of_this_process_is_in_no_line(self):
        secret = "quern_" + "s" * 32
        with mock.patch.object(capability, "_SECRET", secret):
            print("GET /%s" % secret, end="", file=self.stream)
            print("/a\nand %s\n" % secret * 2, file=self.stream)
        self.assertNotIn(secret, self.read())
        self.assertEqual(self.read().count("quern_***"), 3)

    def test_kept_and_dropped_bytes_are_all_that_was_printed(self):
        for n in range(30_000):
            print("%09d%s" % (n, "." * 990), file=self.stream)
        older, current = self.read("w.log.1"), self.read()
        self.assertLessEqual(len(older) + len(current), 17 * MIB)
        header, _, older = older.partition("\n")
        told = int(re.search(r"quern: (\d+) bytes", header).group(1))
        self.assertEqual(told + len(older) + len(current), 30_000 * len("2026-01-01T00:00:00.000Z \n") + 30_000 * 999)
        numbers = [int(n) for n in re.findall(r"Z (\d{9})\.", older + current)]
        self.assertEqual(numbers, list(range(numbers[0], 30_000)))
        self.assertEqual(sorted(os.listdir(self.directory.name)), ["w.log", "w.log.1"])

    def test_after_a_move_the_other_file_is_bounded(self):
        other = os.path.join(self.directory.name, "other.log")
        print("before", file=self.stream)
        os.dup2(os.open(other, os.O_CREAT | os.O_APPEND | os.O_WRONLY), self.descriptor)
        self.log.move_to(other)
        for n in range(12_000):
            print("%09d%s" % (n, "." * 990), file=self.stream)
        self.assertTrue(self.read().endswith("before\n"))
        self.assertEqual(sorted(os.listdir(self.directory.name)), ["other.log", "other.log.1", "w.log"])

    def test_one_print_of_many_lines_stays_within_the_limits_too(self):
        self.stream.write(("x" * 99 + "\n") * 300_000)
        self.assertLessEqual(os.stat(self.path).st_size, log_file.FILE_BYTES_MAX)
        self.assertLessEqual(os.stat(self.path + ".1").st_size, 9 * MIB)

    def test_a_long_line_is_cut_at_a_whole_character(self):
        self.stream.write("ü" * 100_000)
        self.stream.write("ü" * 100_000 + "\nnext\n")
        line, following, _ = self.read().split("\n")
        self.assertLessEqual(len(line.encode()), LINE_BYTES_MAX)
        kept, cut = re.fullmatch(r"\S+ (ü+) \.\.\. quern: (\d+) bytes of this line were dropped", line).groups()
        self.assertEqual(len(kept.encode()) + int(cut), 400_000)
        self.assertTrue(following.endswith(" next"))

    def test_a_file_of_user_code_at_the_descriptor_is_never_truncated(self):
        own = os.path.join(self.directory.name, "own")
        with open(own, "wb") as file:
            file.truncate(20 * MIB)
        theirs = os.open(own, os.O_APPEND | os.O_WRONLY)
        os.dup2(theirs, self.descriptor)
        os.close(theirs)
        print("more", file=self.stream)
        self.assertGreater(os.stat(own).st_size, 20 * MIB)

    def test_if_the_log_cannot_be_rotated_the_newest_lines_are_dropped_and_counted(self):
        open(self.path + ".lock", "w").close()
        for _ in range(20_000):
            print("x" * 1000, file=self.stream)
        self.assertLessEqual(os.stat(self.path).st_size, log_file.HARD_BYTES_MAX + log_file.UNSEEN_BYTES_MAX)
        os.unlink(self.path + ".lock")
        print("the end", file=self.stream)
        *_, note, end = self.read().rstrip("\n").split("\n")
        dropped = int(re.search(r"quern: (\d+) bytes were dropped here", note).group(1))
        self.assertTrue(end.endswith("the end"))
        shown = self.read("w.log.1").count("x" * 1000)
        self.assertEqual(dropped + shown * 1026, 20_000 * 1026)

    def test_a_forked_child_prints_within_the_same_limits(self):
        for _ in range(5000):
            print("x" * 1000, file=self.stream)
        pid = os.fork()
        if pid == 0:
            for _ in range(10_000):
                print("y" * 1000, file=self.stream)
            os._exit(0)
        os.waitpid(pid, 0)
        self.assertLessEqual(os.stat(self.path).st_size, log_file.FILE_BYTES_MAX + log_file.UNSEEN_BYTES_MAX)
        self.assertEqual(dropped_with(self.path + ".1") + os.stat(self.path).st_size, 15_000 * 1026)


if __name__ == "__main__":
    unittest.main()
