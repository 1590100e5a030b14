"""Results are on the disk before their state says so."""

import json
import os
import tempfile
import unittest
from unittest import mock

from quern_application.artifacts import Artifacts


class Reasons(unittest.TestCase):
    def test_only_the_beginning_of_a_long_reason_is_kept(self):
        with tempfile.TemporaryDirectory() as root:
            artifacts = Artifacts(root)
            artifacts.begin("a")
            artifacts.fail("a", "\U0001f600" * 1_000_000)
            self.assertLess(os.path.getsize(artifacts.path("a", "state.json")), 128 * 1024)
            artifacts.fail("a", "short")
            with open(artifacts.path("a", "state.json"), encoding="utf-8") as file:
                self.assertEqual(json.load(file)["reason"], "short")


class Durability(unittest.TestCase):
    def test_all_files_are_durable_before_the_state(self):
        with tempfile.TemporaryDirectory() as root:
            artifacts = Artifacts(root)
            artifacts.begin("a")
            os.makedirs(artifacts.path("a", "rows"))
            with open(artifacts.path("a", "rows", "part.parquet"), "w") as file:
                file.write("rows")
            os.symlink("nowhere", artifacts.path("a", "dangling"))
            synced = []
            fsync = os.fsync

            def noted(descriptor):
                synced.append(os.path.relpath(os.readlink("/proc/self/fd/%d" % descriptor), os.path.realpath(root)))
                fsync(descriptor)

            with mock.patch("os.fsync", noted):
                artifacts.succeed("a")
            self.assertLess(synced.index("a/rows/part.parquet"), synced.index("a/state.json.new"))
            self.assertIn("a/rows", synced)
            # And the directory entry of the state.
            self.assertEqual(synced[-1], "a")
            self.assertTrue(artifacts.is_done("a"))
