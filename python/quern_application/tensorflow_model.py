"""TensorFlow's estimators, of the releases that have them (up to 2.15)."""

from __future__ import annotations

import base64
import glob
import math
import os
from typing import TYPE_CHECKING, Any

import numpy
import tensorflow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .shapes import Columns, Model, Outputs, Plan, Rows, Sample

DIRECTORY = "saved_model"
kind = "tensorflow"
TYPES = {"INT_COLUMN": tensorflow.int64, "FLOAT_COLUMN": tensorflow.float32, "STRING_COLUMN": tensorflow.string}
# Fields that newer releases give for every class, whatever the sample; clients of Cortex 0.3 do not know them.
CONSTANT_OUTPUTS = "all_"


def _learn_as_in_former_days() -> None:
    """A network whose optimizer is not given, or is given by its name, learns with a rate of 0.05, as in TensorFlow 1.

    TensorFlow 2 takes Keras's own rates, which are up to fifty times as small: with the step counts of old
    configurations, training would end long before the model is useful.
    """
    from tensorflow_estimator.python.estimator.canned import optimizers

    optimizers._optimizer_has_default_learning_rate = lambda optimizer: False


def has_estimators() -> bool:
    """Whether this release of TensorFlow has estimators."""
    return hasattr(getattr(tensorflow, "estimator", None), "RunConfig")


def is_estimator(estimator: object) -> bool:
    """Whether create_estimator() returned an estimator of TensorFlow."""
    return hasattr(estimator, "export_saved_model")


def run_config(plan: Plan, model_dir: str) -> tensorflow.estimator.RunConfig:
    """`run_config` of create_estimator(). Checkpoints in `model_dir` outlive a kill: the next training resumes."""
    _learn_as_in_former_days()
    logging = tensorflow.compat.v1.logging
    logging.set_verbosity(getattr(logging, plan["log_level"].upper(), logging.INFO))
    training = plan["model"]["config"]["training"]
    checkpoints = {
        key: training[key] for key in ("save_checkpoints_secs", "save_checkpoints_steps") if training.get(key)
    }
    return tensorflow.estimator.RunConfig(
        model_dir=model_dir,
        tf_random_seed=None if training["tf_randomize_seed"] else training["tf_random_seed"],
        save_summary_steps=training["save_summary_steps"],
        log_step_count_steps=training["log_step_count_steps"],
        keep_checkpoint_max=training["keep_checkpoint_max"],
        keep_checkpoint_every_n_hours=training["keep_checkpoint_every_n_hours"],
        **(checkpoints or {"save_checkpoints_secs": 600}),
    )


def with_types(config: Any) -> Any:
    """model_config with `type_tf` beside the type of every column."""
    if isinstance(config, list):
        return [with_types(each) for each in config]
    if not isinstance(config, dict):
        return config
    typed = {"type_tf": TYPES[config["type"]]} if config.get("type") in TYPES else {}
    return {**{key: with_types(value) for key, value in config.items()}, **typed}


def train(estimator: Any, model: Model, rows: Rows) -> tuple[tuple[Any, Model], dict[str, float]]:
    """Trains, and returns (the model to save, metrics of the evaluation). Errors of TensorFlow pass through."""
    training, evaluation = rows("training"), rows("evaluation")
    settings, checks = model["config"]["training"], model["config"]["evaluation"]
    if model["type"] == "regression":
        estimator = tensorflow.estimator.add_metrics(estimator, _regression_metrics)
    train_spec = tensorflow.estimator.TrainSpec(
        _input(model, training, settings["batch_size"], settings["shuffle"], None),
        max_steps=_steps(model, training, settings),
    )
    eval_spec = tensorflow.estimator.EvalSpec(
        _input(model, evaluation, checks["batch_size"], checks["shuffle"], checks.get("num_epochs", 1)),
        steps=checks.get("num_steps", None if "num_epochs" in checks else 100),
        start_delay_secs=checks["start_delay_secs"],
        throttle_secs=checks["throttle_secs"],
    )
    metrics, _ = tensorflow.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
    # None if the training had done all steps before it was killed.
    metrics = metrics or estimator.evaluate(eval_spec.input_fn, steps=eval_spec.steps)
    return (estimator, model), {name: float(value) for name, value in metrics.items()}


def _steps(model: Model, columns: Columns, settings: dict[str, Any]) -> int:
    if "num_epochs" not in settings:
        return settings.get("num_steps", 1000)
    return math.ceil(len(columns[model["target"]]) / settings["batch_size"]) * settings["num_epochs"]


def _input(model: Model, columns: Columns, batch_size: int, shuffle: bool, epochs: int | None) -> Callable[[], Any]:
    """An input_fn over arrays, batch by batch: a graph cannot hold over 2 GiB. `epochs` None is for ever."""
    names = [*model["features"], *model["training_columns"]]
    count = len(columns[model["target"]])

    def batches() -> Iterator[tuple[Columns, numpy.ndarray]]:
        draw = numpy.random.default_rng(model["config"]["training"]["tf_random_seed"])
        epoch = 0
        while epochs is None or epoch < epochs:
            order = draw.permutation(count) if shuffle else numpy.arange(count)
            for start in range(0, count, batch_size):
                chosen = order[start : start + batch_size]
                yield {name: columns[name][chosen] for name in names}, columns[model["target"]][chosen]
            epoch += 1

    def spec(name: str) -> tensorflow.TensorSpec:
        return tensorflow.TensorSpec([None], TYPES[model["column_types"][name]])

    def input_fn() -> tensorflow.data.Dataset:
        signature = ({name: spec(name) for name in names}, spec(model["target"]))
        return tensorflow.data.Dataset.from_generator(batches, output_signature=signature).prefetch(1)

    return input_fn


def _regression_metrics(labels: Any, predictions: dict[str, Any]) -> dict[str, Any]:
    values = predictions["predictions"]
    labels = tensorflow.reshape(tensorflow.cast(labels, values.dtype), tensorflow.shape(values))
    rmse = tensorflow.keras.metrics.RootMeanSquaredError()
    rmse.update_state(labels, values)
    mae = tensorflow.keras.metrics.MeanAbsoluteError()
    mae.update_state(labels, values)
    return {"RMSE": rmse, "MAE": mae}


def save(trained: tuple[Any, Model], directory: str) -> None:
    """Saves it for ServedModel."""
    estimator, model = trained

    def receiver() -> Any:
        placeholder = tensorflow.compat.v1.placeholder
        features = {name: placeholder(TYPES[model["column_types"][name]], [None], name) for name in model["features"]}
        return tensorflow.estimator.export.ServingInputReceiver(features, features)

    estimator.export_saved_model(os.path.join(directory, DIRECTORY), receiver)


class ServedModel:
    """An exported estimator that answers requests."""

    def __init__(self, directory: str, model: Model) -> None:
        # A directory named by the time of the export.
        (path,) = glob.glob(os.path.join(glob.escape(directory), DIRECTORY, "*"))
        self._model = model
        self._saved = tensorflow.saved_model.load(path)
        self._predict = self._saved.signatures["predict"]

    def predict(self, rows: list[Sample]) -> list[Outputs]:
        """The outputs of each row, which is a dict of the features by name."""
        features = {
            name: tensorflow.constant([row[name] for row in rows], TYPES[self._model["column_types"][name]])
            for name in self._model["features"]
        }
        outputs = {
            name: value.numpy()
            for name, value in self._predict(**features).items()
            if not name.startswith(CONSTANT_OUTPUTS)
        }
        return [{name: _encoded(values[at]) for name, values in outputs.items()} for at in range(len(rows))]


def _encoded(value: Any) -> Any:
    """As Cortex 0.3 wrote it: 64-bit integers as text, bytes as base64."""
    if isinstance(value, numpy.ndarray):
        return [_encoded(each) for each in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, numpy.int64):
        return str(value)
    return value.item()
