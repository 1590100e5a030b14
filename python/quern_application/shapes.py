"""Types that several modules of applications share, for readers and type checkers.

No module imports this file when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

# The task of a stage, as src/legacy/plans.ts writes it: `stage`, `project`, `artifacts`, `alive`, and the resources.
Plan = dict[str, Any]
# One resource of a plan: `id`, `name`, and its fields in the user's YAML.
Resource = dict[str, Any]
# `model` of a training's plan: `id`, `name`, `type`, `target`, `features`, `column_types`, `config`, and others.
Model = dict[str, Any]
# The args of an aggregator or a transformer by name; an arg that is an aggregate is its value.
Args = dict[str, Any]
# The inputs of an aggregator or a transformer by name: a column, or a list of columns.
Inputs = dict[str, Any]
# Values by the name of an input or a column: a sample of a request, or a row.
Sample = dict[str, Any]
# The columns of a dataset by name, each as an array of its values.
Columns = dict[str, Any]
# The columns of a part of a dataset, `training` or `evaluation`; empty if the part has no rows.
Rows = Callable[[str], Columns]
# The outputs of a model for one row: `predictions`, or `class_ids`, `classes`, `logits`, `probabilities`.
Outputs = dict[str, Any]


class Served(Protocol):
    """A model that answers requests."""

    def predict(self, rows: list[Sample]) -> list[Outputs]: ...
