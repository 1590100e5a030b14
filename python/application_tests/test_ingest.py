"""Files into typed columns, and the errors for invalid files."""

import math
import os
import tempfile
import unittest

import duckdb
from quern_application.ingest import ingest, violations

COLUMNS = [("i", "INT_COLUMN"), ("f", "FLOAT_COLUMN"), ("s", "STRING_COLUMN")]


class Ingestion(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def write(self, text, name="data.csv", encoding="utf-8"):
        with open(self.path(name), "w", encoding=encoding) as file:
            file.write(text)
        return self.path(name)

    def environment(self, files, **given):
        return {
            "type": "csv",
            "files": files,
            "columns": [{"name": name, "source": name, "type": kind} for name, kind in COLUMNS],
            "csv_config": {},
            "drop_null": False,
            **given,
        }

    def ingested(self, environment):
        """(rows read, rows kept, the rows)."""
        connection = duckdb.connect()
        read, kept = ingest(connection, environment, self.path("raw.parquet"))
        return read, kept, connection.execute("SELECT * FROM read_parquet('%s')" % self.path("raw.parquet")).fetchall()

    def rows_of(self, text, **given):
        return self.ingested(self.environment([self.write(text)], **given))[2]

    def test_types(self):
        self.assertEqual(self.rows_of("1,2.5,a\n-3,1e3,b c\n"), [(1, 2.5, "a"), (-3, 1000.0, "b c")])
        self.assertEqual(self.rows_of('1,0.1,"a, ""b"""\n'), [(1, 0.10000000149011612, 'a, "b"')])
        self.assertEqual(self.rows_of('1,1,"two\nlines"\n'), [(1, 1.0, "two\nlines")])

    def test_names_of_files_are_no_patterns(self):
        for directory in ("1", "[1]"):
            os.mkdir(self.path(directory))
        names = ["a*.csv", "ab.csv", "a?.csv", "[ab].csv", "a.csv", "**", "it's [x]*.csv", "1/a.csv", "[1]/a.csv"]
        files = [self.write("%d,1,a\n" % number, name) for number, name in enumerate(names)]
        read, _, rows = self.ingested(self.environment(files))
        self.assertEqual((read, [row[0] for row in rows]), (9, list(range(9))))

    def test_nulls(self):
        self.assertEqual(self.rows_of(",,\n1,,x\n"), [(None, None, None), (1, None, "x")])
        self.assertEqual(self.rows_of("NA,1,NA\n", csv_config={"null_value": "NA"}), [(None, 1.0, None)])
        environment = self.environment([self.write("1,1,a\n,2,b\n3,,c\n")], drop_null=True)
        self.assertEqual(self.ingested(environment), (3, 1, [(1, 1.0, "a")]))

    def test_a_value_of_the_wrong_type_ends_the_ingestion(self):
        for text, said in (
            ("x,1,a\n", "'x'"),
            ("1,y,a\n", '"y"'),
            ("1.5,1,a\n", '"1.5"'),
            ("1,2\n", "Expected"),
            ("1,2,a,b\n", "Expected"),
        ):
            with self.assertRaisesRegex(duckdb.Error, said):
                self.rows_of("1,1,a\n" + text)

    def test_settings_of_csv(self):
        self.assertEqual(self.rows_of("i;f;s\n1;2;a\n", csv_config={"sep": ";", "header": True}), [(1, 2.0, "a")])
        self.assertEqual(self.rows_of("# said\n1,2,a\n", csv_config={"comment": "#"}), [(1, 2.0, "a")])
        self.assertEqual(self.rows_of("1,2,'a,b'\n", csv_config={"quote": "'"}), [(1, 2.0, "a,b")])
        self.assertEqual(self.rows_of('1,2,"a\\"b"\n', csv_config={"escape": "\\"}), [(1, 2.0, 'a"b')])
        trimmed = {"ignore_leading_white_space": True, "ignore_trailing_white_space": True}
        self.assertEqual(self.rows_of("1, 2 , a \n", csv_config=trimmed), [(1, 2.0, "a")])
        words = {"nan_value": "none", "positive_inf": "many", "negative_inf": "few"}
        values = [row[1] for row in self.rows_of("1,none,a\n1,many,b\n1,few,c\n1,1.5,d\n", csv_config=words)]
        self.assertTrue(math.isnan(values[0]))
        self.assertEqual(values[1:], [math.inf, -math.inf, 1.5])
        file = self.write("1,2,é\n", encoding="latin-1")
        self.assertEqual(
            self.ingested(self.environment([file], csv_config={"encoding": "latin-1"}))[2], [(1, 2.0, "é")]
        )

    def test_several_files(self):
        files = [self.write("1,1,a\n", "part-0.csv"), self.write("2,2,b\n", "part-1.csv")]
        self.assertEqual(self.ingested(self.environment(files))[2], [(1, 1.0, "a"), (2, 2.0, "b")])

    def test_limits(self):
        text = "".join("%d,1,a\n" % number for number in range(1000))

        def first(**limit):
            return [row[0] for row in self.rows_of(text, limit=limit)]

        self.assertEqual(first(num_rows=3), [0, 1, 2])
        self.assertEqual(first(fraction_of_rows=0.01), list(range(10)))
        drawn = first(num_rows=50, randomize=True, random_seed=4)
        self.assertEqual(len(drawn), 50)
        self.assertNotEqual(sorted(drawn), list(range(50)))
        self.assertEqual(drawn, first(num_rows=50, randomize=True, random_seed=4))
        self.assertEqual(len(first(num_rows=5000)), 1000)

    def test_parquet(self):
        file = self.path("data.parquet")
        duckdb.connect().execute(
            "COPY (SELECT 1 AS number, 2.5::DOUBLE AS f, 'a' AS s) TO '%s' (FORMAT parquet)" % file
        )
        environment = self.environment([file], type="parquet")
        environment["columns"][0]["source"] = "number"
        self.assertEqual(self.ingested(environment), (1, 1, [(1, 2.5, "a")]))
        environment["columns"][1]["source"] = "other"
        with self.assertRaisesRegex(ValueError, r"parquet dataset: missing columns: \[other\]"):
            self.ingested(environment)
        environment["columns"][1]["source"] = "s"
        with self.assertRaisesRegex(ValueError, "raw data schema mismatch: s is VARCHAR, and must fit FLOAT_COLUMN"):
            self.ingested(environment)


class Validation(unittest.TestCase):
    def violations_of(self, **rules):
        connection = duckdb.connect()
        connection.execute("CREATE TABLE data (x FLOAT, w VARCHAR)")
        connection.execute("INSERT INTO data VALUES (0.1, 'a'), (5, 'b'), (12, 'o''clock'), (NULL, NULL)")
        name = rules.pop("name", "x")
        kind = "FLOAT_COLUMN" if name == "x" else "STRING_COLUMN"
        return violations(connection, [{"name": name, "type": kind, "required": False, **rules}])

    def test_every_violation_is_counted(self):
        self.assertEqual(
            self.violations_of(min=1, max=10, required=True),
            [
                "Data validation (x IS NOT NULL) has been violated in 1/4 samples",
                "Data validation (x >= 1) has been violated in 1/4 samples",
                "Data validation (x <= 10) has been violated in 1/4 samples",
            ],
        )
        self.assertEqual(
            self.violations_of(name="w", values=["a", "b"]),
            ["Data validation (w IN (a, b)) has been violated in 1/4 samples"],
        )
        self.assertEqual(
            self.violations_of(values=[5, 12]), ["Data validation (x IN (5, 12)) has been violated in 1/4 samples"]
        )

    def test_bounds_are_as_wide_as_the_column(self):
        self.assertEqual(self.violations_of(min=0.1, max=12), [])
        self.assertEqual(self.violations_of(name="w", values=["a", "b", "o'clock"]), [])
        self.assertEqual(self.violations_of(), [])
