"""Rows as the arrays that estimators take. Training and serving come by this one way."""

import numpy


def feature_matrix(columns, types):
    """
    `columns`: an array or list of values for each feature, in order; `types`: their column types. Shape (rows, features): float32 where
    all are FLOAT_COLUMN, float64 where some are INT_COLUMN, objects where some are neither.
    """
    if all(kind == "FLOAT_COLUMN" for kind in types):
        dtype = numpy.float32
    elif all(kind in ("FLOAT_COLUMN", "INT_COLUMN") for kind in types):
        dtype = numpy.float64
    else:
        dtype = object
    matrix = numpy.empty((len(columns[0]), len(columns)), dtype=dtype)
    for at, values in enumerate(columns):
        matrix[:, at] = values if dtype is not object else list(values)
    return matrix
