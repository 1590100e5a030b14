"""The launcher's pure parts, and archives that somebody made with bad intent."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import tempfile
import unittest

from quern_launcher.contents import content_id
from quern_launcher.environment_id import environment_id
from quern_launcher.hidden import hide
from quern_launcher.supervise import PAUSE_MAX_S, pause_after
from quern_launcher.unpack import BYTES_LIMIT, ArchiveError, unpack
from quern_launcher.user_environment import parse_env, without_own


def entry(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "") -> tuple:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(content)
    return info, content


def archive(*entries: tuple) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content))
    return gzip.compress(out.getvalue())


def unpacked(data: bytes, piece: int = 1000) -> dict[str, bytes]:
    source = io.BytesIO(data)
    with tempfile.TemporaryDirectory() as directory:
        unpack(lambda count: source.read(min(count, piece)), directory)
        found = {}
        for folder, _, names in os.walk(directory):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, directory)] = file.read()
        return found


class UnpackTest(unittest.TestCase):
    def test_it_creates_the_files_of_the_project_only(self) -> None:
        long = "project/" + "d/" * 30 + "n" * 200
        data = archive(entry("config.yaml", b"x"), entry("project/a.py", b"1"), entry(long, b"2"))
        self.assertEqual(unpacked(data, 7), {"a.py": b"1", long[len("project/") :]: b"2"})

    def test_it_refuses_whatever_is_no_plain_file_inside(self) -> None:
        for bad in (
            entry("project/../../x", b"1"),
            entry("/project/x", b"1"),
            entry("project/link", kind=tarfile.SYMTYPE, link="/etc/passwd"),
            entry("project/hard", kind=tarfile.LNKTYPE, link="project/a"),
            entry("project/pipe", kind=tarfile.FIFOTYPE),
            entry("project/device", kind=tarfile.CHRTYPE),
            entry("project/" + "d/" * 70 + "x", b"1"),
            entry("project/" + "n" * 256, b"1"),
        ):
            with self.subTest(bad[0].name[:40]), self.assertRaises(ArchiveError):
                unpacked(archive(entry("project/a", b"1"), bad))

    def test_it_refuses_a_file_that_is_there_twice_and_one_below_a_file(self) -> None:
        for second in ("project/a", "project/a/b"):
            with self.subTest(second), self.assertRaises((ArchiveError, OSError)):
                unpacked(archive(entry("project/a", b"1"), entry(second, b"2")))
        below = archive(entry("project/a/b", b"1"), entry("project/a", b"2"), entry("project/a/b/c", b"3"))
        with self.assertRaises((ArchiveError, OSError)):
            unpacked(below)

    def test_it_refuses_thousands_of_headers_that_extend_each_other(self) -> None:
        for kind, text in ((tarfile.XHDTYPE, b"12 path=abc\n"), (tarfile.GNUTYPE_LONGNAME, b"abc\0")):
            info = tarfile.TarInfo("x")
            info.type, info.size = kind, len(text)
            header = info.tobuf(tarfile.USTAR_FORMAT) + text + bytes(512 - len(text))
            with self.subTest(kind), self.assertRaises(ArchiveError):
                unpacked(gzip.compress(header * 3000 + bytes(1024)))

    def test_it_refuses_what_is_cut_off_or_no_archive(self) -> None:
        whole = archive(entry("project/a", os.urandom(5000)))
        for data in (b"", b"hello", whole[: len(whole) // 2]):
            with self.subTest(len(data)), self.assertRaises(ArchiveError):
                unpacked(data)

    def test_it_stops_at_a_file_or_a_header_that_is_too_long_without_reading_it(self) -> None:
        for kind, size in ((tarfile.REGTYPE, BYTES_LIMIT), (tarfile.XHDTYPE, 2**40), (tarfile.GNUTYPE_LONGNAME, 2**30)):
            info = tarfile.TarInfo("project/a")
            info.type, info.size = kind, size
            data = gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(100_000))
            with self.subTest(kind), self.assertRaises(ArchiveError):
                unpacked(data)


class LauncherTest(unittest.TestCase):
    def test_the_first_death_costs_no_pause_and_many_cost_half_a_minute(self) -> None:
        pauses = [pause_after(deaths) for deaths in range(12)]
        self.assertEqual(pauses[:5], [0, 0, 0.1, 0.2, 0.4])
        self.assertEqual(pauses[11], PAUSE_MAX_S)
        self.assertEqual(pause_after(10_000), PAUSE_MAX_S)

    def test_content_ids_are_those_of_the_server(self) -> None:
        # Of src/apis/projects/project-files.ts: JavaScript sorts the smiley before the tilde.
        files = {"b": "1", "a/b": "2", "\uff5e": "3", "\U0001f600": "4"}
        self.assertEqual(content_id(files), CONTENT_ID)

    def test_variables_of_a_file_are_read_as_node_reads_them(self) -> None:
        text = 'A=1\nexport B = two # comment\nC=\'a #b\'\nD="x\\ny"\nE="two\nlines"\n# F=1\nG=\n'
        expected = {"A": "1", "B": "two", "C": "a #b", "D": "x\ny", "E": "two\nlines", "G": ""}
        self.assertEqual(parse_env(text), expected)

    def test_installers_print_no_secrets_of_addresses(self) -> None:
        for secret, shown in (
            ("https://me:pass/word@x/simple", "https://***@x/simple"),
            ("https://x/a.whl?Token=abc&b=1", "https://x/a.whl?Token=***&b=1"),
            ("key quern_" + "a" * 32, "key quern_***"),
            ("https://x:8080/a@1", "https://x:8080/a@1"),
        ):
            self.assertEqual(hide(secret), shown)

    def test_user_code_gets_no_variable_of_quern(self) -> None:
        self.assertEqual(without_own({"QUERN_X": "1", "PATH": "/bin"}), {"PATH": "/bin"})

    def test_an_environment_depends_on_its_requirements_and_on_what_they_name(self) -> None:
        def id_of(**files: str) -> tuple:
            with tempfile.TemporaryDirectory() as parent:
                project = os.path.join(parent, "0" * 24)
                os.makedirs(project)
                for name, text in files.items():
                    with open(os.path.join(project, name.replace("_", ".")), "w") as file:
                        file.write(text)
                return environment_id(project, "/cache", {"version": "3"})

        one = id_of(requirements_txt="numpy==1 # ./x\n")
        self.assertEqual(one, id_of(requirements_txt="numpy==1 # ./x\n", other_py="x"))
        self.assertFalse(one[1])
        self.assertNotEqual(one, id_of(requirements_txt="numpy==2\n"))
        included = id_of(requirements_txt="-r more.txt\n", more_txt="a")
        self.assertNotEqual(included, id_of(requirements_txt="-r more.txt\n", more_txt="b"))
        for local in ("./lib", "-e .", "lib/", "a.whl", "name @ file:///x", "-e lib/[extra]", "--find-links=wheels/"):
            self.assertTrue(id_of(requirements_txt=local)[1], local)
        for remote in ("numpy", "a[b]>=1; python_version<'3'", "--index-url https://x/y", "a @ https://x/a.whl"):
            self.assertFalse(id_of(requirements_txt=remote)[1], remote)


CONTENT_ID = "86084ecbb7d9e8fa5cefae34"
