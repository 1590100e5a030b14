"""Trains one model, and makes a project that can be served."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import duckdb

from . import fitted_model
from .artifacts import sync_tree, write_durably
from .sql import exactly, name, text
from .transform import TransformedColumn
from .user_code import function_of, load_module

if TYPE_CHECKING:
    from collections.abc import Callable

    from .artifacts import Artifacts
    from .shapes import Columns, Plan

PREDICTOR = 'from quern_application.samples_predictor import PythonPredictor\n\n__all__ = ["PythonPredictor"]\n'
DIRECTORY = ".quern"


class TrainStage:
    """One training: `create_estimator(run_config, model_config)` of the user's file returns the estimator.

    - `run_config`: see `run_config` of fitted_model.py and tensorflow_model.py.
    - `model_config`: a dict of the model's configuration, with that of each column in the place of its name, and with
      the values of `aggregates`.

    `run` raises ValueError or the error of the user's code, and records the reason as the model's state.
    """

    def __init__(self, plan: Plan, artifacts: Artifacts) -> None:
        self._plan = plan
        self._model = plan["model"]
        self._artifacts = artifacts

    def run(self) -> None:
        model_id = self._model["id"]
        if self._artifacts.is_done(model_id):
            return
        self._artifacts.begin(model_id)
        try:
            metrics = self._train()
            write_durably(self._artifacts.path(model_id, "metrics.json"), json.dumps(metrics).encode())
            self._artifacts.succeed(model_id)
        except BaseException as error:
            self._artifacts.fail(model_id, "%s: %s" % (type(error).__name__, error))
            raise

    def _train(self) -> dict[str, float]:
        model = self._model
        self._assert_serves()
        module = load_module(self._plan["project"], model["path"])
        create_estimator = function_of(module, model["path"], "create_estimator")
        frame: Any = fitted_model
        config = self._model_config()
        tensorflow_model = _tensorflow()
        if tensorflow_model is not None:
            frame, config = tensorflow_model, tensorflow_model.with_types(config)
        estimator = create_estimator(
            frame.run_config(self._plan, self._artifacts.path(model["id"], "model_dir")), config
        )
        if tensorflow_model is not None and not tensorflow_model.is_estimator(estimator):
            frame = fitted_model
        print("\nTraining\n--------")
        fitted, metrics = frame.train(estimator, model, self._rows)
        print("\nEvaluating\n----------")
        for metric, value in metrics.items():
            print("%s = %.6g" % (metric, value))
        print("\nCaching model %s" % model["name"])
        self._make_project(lambda directory: frame.save(fitted, directory), frame.kind)
        return metrics

    def _assert_serves(self) -> None:
        """Checks, before hours of training, that each feature can be computed from a request's sample. Raises
        ValueError.
        """
        model, project = self._model, self._plan["project"]
        for column in model["transformed"]:
            if column["name"] in model["features"]:
                TransformedColumn(
                    column, model["raw_types"], project, self._artifacts.read_value
                ).assert_prepares_samples()

    def _model_config(self) -> dict[str, Any]:
        """The argument of create_estimator(): a plain dict."""
        values = {key: self._artifacts.read_value(each) for key, each in self._model["aggregates"].items()}
        return {**self._model["config"], "aggregates": values}

    def _rows(self, part: str) -> Columns:
        """The columns of a part of the dataset by name; empty where the part has no rows."""
        directory = self._artifacts.path(self._model["dataset"], "rows", "quern_part=%s" % part)
        if not os.path.isdir(directory):
            return {}
        columns = ", ".join(name(each) for each in self._model["column_types"])
        return (
            duckdb.connect()
            .execute("SELECT %s FROM read_parquet(%s)" % (columns, text(exactly(directory) + "/*.parquet")))
            .fetchnumpy()
        )

    def _make_project(self, save: Callable[[str], None], kind: str) -> None:
        """The user's files with the model and its transformers beside them: a project like any other."""
        target = self._plan["serving_project"]
        temporary = target + ".new"
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.copytree(self._plan["project"], temporary, copy_function=_link)
        inner = os.path.join(temporary, DIRECTORY)
        os.makedirs(inner, exist_ok=True)
        save(inner)
        used = {
            each["aggregate"]
            for column in self._model["transformed"]
            for each in column["args"].values()
            if "aggregate" in each
        }
        serving = {**self._model, "kind": kind, "values": {each: self._artifacts.read_value(each) for each in used}}
        serving.pop("config")
        write_durably(os.path.join(inner, "serving.json"), json.dumps(serving).encode())
        write_durably(os.path.join(inner, "predictor.py"), PREDICTOR.encode())
        sync_tree(temporary)
        shutil.rmtree(target, ignore_errors=True)
        os.replace(temporary, target)


def _tensorflow() -> Any:
    """The module for TensorFlow's estimators, if the installed TensorFlow has them."""
    if importlib.util.find_spec("tensorflow") is None:
        return None
    from . import tensorflow_model

    return tensorflow_model if tensorflow_model.has_estimators() else None


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
