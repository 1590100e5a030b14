"""The data of an application: ingested, validated, aggregated, and made into training datasets.

Steps that have succeeded before do not run again.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .aggregate import one_pass, own_aggregate
from .data_fault import DataFault
from .ingest import ingest, violations
from .sql import connect, exactly, name, text
from .transform import TransformedColumn, sanity_check

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .artifacts import Artifacts
    from .shapes import Plan, Resource

SAMPLES_SHOWN = 3
SANITY_ROWS = 100
MEMORY_LIMIT = "1GiB"
# The range of the numbers that assign rows to datasets.
SHARES = 1_000_000


class DataStage:
    """One run over the data. `run` raises DataFault, ValueError, or what the user's code and DuckDB raise."""

    def __init__(self, plan: Plan, artifacts: Artifacts) -> None:
        self._plan = plan
        self._artifacts = artifacts
        self._environment = plan["environment"]
        self._raw_types = {column["name"]: column["type"] for column in plan["raw_columns"]}
        temporary = artifacts.path("temporary")
        os.makedirs(temporary, exist_ok=True)
        self._connection = connect(temporary, MEMORY_LIMIT)

    def run(self) -> None:
        self._ingest()
        self._validate()
        self._aggregate()
        columns = self._transform()
        self._generate(columns)

    @contextmanager
    def _computing(self, resources: list[Resource]) -> Iterator[None]:
        """Marks these as running. If something fails, those that have not ended fail with it."""
        for resource in resources:
            self._artifacts.begin(resource["id"])
        try:
            yield
        except BaseException as error:
            for resource in resources:
                if not self._artifacts.is_done(resource["id"]):
                    self._artifacts.fail(resource["id"], str(error))
            raise

    def _missing(self, kind: str) -> list[Resource]:
        """Each content once, even if several names have it."""
        unique = {resource["id"]: resource for resource in self._plan[kind]}
        return [resource for resource in unique.values() if not self._artifacts.is_done(resource["id"])]

    def _ingest(self) -> None:
        environment = self._environment
        file = self._artifacts.path(environment["id"], "raw.parquet")
        raw_columns = self._missing("raw_columns")
        if not self._artifacts.is_done(environment["id"]):
            _section("Ingesting")
            print("Ingesting %s data from %s" % (environment["app"], environment["path"]))
            with self._computing([environment, *raw_columns]):
                read, kept = ingest(self._connection, environment, file)
                if kept == 0:
                    raise DataFault("%s has no rows" % environment["path"])
                self._artifacts.succeed(environment["id"])
            print("Caching %s data (version: %s)" % (environment["app"], environment["version"]))
            dropped = "" if read == kept else "%d rows read, %d rows dropped, " % (read, read - kept)
            print("%s%d rows ingested" % (dropped, kept))
        self._connection.execute(
            "CREATE TEMP VIEW data AS SELECT * FROM read_parquet(%s, file_row_number = true)" % text(exactly(file))
        )
        print("\nFirst %d samples:" % SAMPLES_SHOWN)
        self._print_samples("SELECT %s FROM data LIMIT %d" % (", ".join(map(name, self._raw_types)), SAMPLES_SHOWN))

    def _validate(self) -> None:
        missing = self._missing("raw_columns")
        with self._computing(missing):
            faults = violations(self._connection, missing)
            for fault in faults:
                print(fault)
            if faults:
                raise DataFault("raw column validations failed: %s" % "; ".join(faults))
            for column in missing:
                self._artifacts.succeed(column["id"])

    def _aggregate(self) -> None:
        missing = self._missing("aggregates")
        if not missing:
            return
        _section("Aggregating")
        with self._computing(missing):
            values: dict[str, Any] = {}

            def done(aggregate: Resource, value: Any) -> None:
                self._artifacts.write_value(aggregate["id"], value)
                self._artifacts.succeed(aggregate["id"])
                values[aggregate["name"]] = value

            for aggregate in missing:
                print("Aggregating %s" % aggregate["name"])
            one_pass(self._connection, [each for each in missing if "built_in" in each["aggregator"]], done)
            for aggregate in missing:
                if "built_in" not in aggregate["aggregator"]:
                    done(aggregate, own_aggregate(self._connection, aggregate, self._plan["project"]))
        print("\nAggregates:")
        width = max(map(len, values))
        for aggregate in missing:
            print("%s  %s" % ((aggregate["name"] + ":").ljust(width + 1), values[aggregate["name"]]))

    def _transform(self) -> dict[str, TransformedColumn]:
        """The transformed columns by name, each with both its ways compared."""
        columns = {
            column["name"]: TransformedColumn(
                column, self._raw_types, self._plan["project"], self._artifacts.read_value
            )
            for column in self._plan["transformed_columns"]
        }
        missing = self._missing("transformed_columns")
        if missing:
            _section("Validating Transformers")
            print("Sanity checking transformers against the first %d samples" % SANITY_ROWS)
        for resource in missing:
            column = columns[resource["name"]]
            print("Transforming %s to %s" % (", ".join(column.inputs), column.name))
            with self._computing([resource]):
                sanity_check(self._connection, [column], SANITY_ROWS)
                self._artifacts.succeed(resource["id"])
        return columns

    def _generate(self, columns: dict[str, TransformedColumn]) -> None:
        missing = self._missing("training_datasets")
        if missing:
            _section("Generating Training Datasets")
        for dataset in missing:
            print("Generating %s" % dataset["name"])
            with self._computing([dataset]):
                self._write_dataset(dataset, columns)
                self._artifacts.succeed(dataset["id"])

    def _write_dataset(self, dataset: Resource, columns: dict[str, TransformedColumn]) -> None:
        """Rows go to training or evaluation by a hash of their position, so that another run has the same sets."""
        selected = ", ".join(
            "%s AS %s" % (columns[each].sql(self._connection) if each in columns else name(each), name(each))
            for each in dataset["columns"]
        )
        training, evaluation = dataset["ratio"]
        share = int(SHARES * training / (training + evaluation))
        part = "CASE WHEN hash(file_row_number) %% %d < %d THEN 'training' ELSE 'evaluation' END AS quern_part" % (
            SHARES,
            share,
        )
        directory = self._artifacts.path(dataset["id"], "rows")
        self._connection.execute(
            "COPY (SELECT %s, %s FROM data) TO %s (FORMAT parquet, PARTITION_BY (quern_part), OVERWRITE)"
            % (selected, part, text(directory))
        )

    def _print_samples(self, query: str) -> None:
        rows = self._connection.execute(query)
        heads = [column[0] for column in rows.description]
        for head, *values in zip(heads, *rows.fetchall()):
            print(
                "%s  %s"
                % ((head + ":").ljust(max(map(len, heads)) + 1), "  ".join(_shown(value).rjust(12) for value in values))
            )


def _shown(value: object) -> str:
    """Six digits of a number, as many as 32 bits hold."""
    return "%.6g" % value if isinstance(value, float) else str(value)


def _section(title: str) -> None:
    print("\n%s\n%s" % (title, "-" * len(title)))
