"""Rows as the arrays that estimators take. Training and serving both use this code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

if TYPE_CHECKING:
    from collections.abc import Sequence


def feature_matrix(columns: Sequence[Any], types: list[str]) -> numpy.ndarray:
    """The matrix that `fit` and `predict` of an estimator get, of shape (rows, features).

    `columns` has an array or list of values for each feature, in order, all of one length. `types` has their column
    types. The matrix is of float32 if all are FLOAT_COLUMN, of float64 if some are INT_COLUMN, and of objects if some
    are neither.
    """
    if all(kind == "FLOAT_COLUMN" for kind in types):
        dtype: Any = numpy.float32
    elif all(kind in ("FLOAT_COLUMN", "INT_COLUMN") for kind in types):
        dtype = numpy.float64
    else:
        dtype = object
    matrix = numpy.empty((len(columns[0]), len(columns)), dtype=dtype)
    for at, values in enumerate(columns):
        matrix[:, at] = values if dtype is not object else list(values)
    return matrix
