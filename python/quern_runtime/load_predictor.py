"""Finds the user's class, checks it, makes its instance, and calls its methods by the names they declare."""

from __future__ import annotations

import copy
import importlib.util
import inspect
import json
import os
import sys
from collections import deque
from typing import TYPE_CHECKING, Any

from .answers import blocking_iterator, is_streamed
from .late import late
from .signatures import METHODS, REQUIRED, signature_errors

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from .shapes import Arguments, Init


class PredictorError(Exception):
    """The class cannot be used; `stage` is `load`, `signature` or `init`."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(message)
        self.stage = stage


class Predictor:
    """The user's instance with the parameters that its methods declare.

    `job_spec` is the dict that its `__init__` was given; None in real time. Exceptions of user code pass through all
    methods.
    """

    def __init__(self, instance: Any, job_spec: dict[str, Any] | None = None) -> None:
        self.instance = instance
        self._job_spec = job_spec
        self._predict = instance.predict
        declared = _names(instance.predict)
        self.takes_payload = "payload" in declared
        self._takes_batch_id = "batch_id" in declared
        # Quern's own option: the payload is the unparsed body.
        self.takes_body = getattr(instance, "takes_body", False)
        after = _names(instance.post_predict) if hasattr(instance, "post_predict") else ()
        self.wants = [name for name in ("query_params", "headers") if name in declared or name in after]
        # Arguments that predict() declares although requests do not have them, and those that only post_predict()
        # declares.
        self._absent = {name: None for name in ("batch_id", "job_spec") if name in declared}
        self._only_after = [name for name in self.wants if name not in declared]
        # The arguments that are the same for all batches of a job.
        of_batches = {"query_params": None, "headers": None, "job_spec": job_spec}
        self._of_batches: Arguments = {name: value for name, value in of_batches.items() if name in declared}
        self.is_async = inspect.iscoroutinefunction(instance.predict) or inspect.isasyncgenfunction(instance.predict)
        self.on_job_complete = getattr(instance, "on_job_complete", None)
        self.post_predict = self._post_predict if hasattr(instance, "post_predict") else None
        self._loop: asyncio.AbstractEventLoop | None = None

    def call(self, arguments: Arguments) -> Any:
        """predict() with the arguments of a request; for an async one, the awaitable."""
        if self._absent or self._only_after:
            arguments = {**self._absent, **arguments}
            for name in self._only_after:
                del arguments[name]
        return self._predict(**arguments)

    def predict_batch(self, payload: Any, batch_id: str, keeps: bool = False) -> Any:
        """predict() with a batch of a job, to its end: an async one runs here, and a generator is run through.

        Returns what it returned, and with `keeps` the list of what a generator gave.
        """
        arguments = self._of_batches.copy()
        if self.takes_payload:
            arguments["payload"] = payload
        if self._takes_batch_id:
            arguments["batch_id"] = batch_id
        return self._finish(self._predict(**arguments), keeps)

    def learn_total(self, total_batch_count: int) -> None:
        """All batches are enqueued: code that kept the dict of `__init__` sees their number."""
        assert self._job_spec is not None
        self._job_spec["total_batch_count"] = total_batch_count

    def complete_job(self) -> None:
        """on_job_complete(), to its end, if the class has it. Its exceptions pass through."""
        if self.on_job_complete is None:
            return
        given = {"job_spec": self._job_spec} if "job_spec" in _names(self.on_job_complete) else {}
        self._finish(self.on_job_complete(**given))

    def close(self) -> None:
        """Nothing is called any more."""
        if self._loop is not None:
            self._loop.close()

    def _post_predict(self, response: Any, arguments: Arguments) -> Any:
        given: Arguments = {"response": response, "payload": None, "query_params": None, "headers": None, **arguments}
        return self.instance.post_predict(
            **{name: given[name] for name in given if name in _names(self.instance.post_predict)}
        )

    def _finish(self, value: Any, keeps: bool = False) -> Any:
        if value is None:
            return None
        if hasattr(value, "__await__"):
            self._loop = self._loop or late("asyncio").new_event_loop()
            value = self._loop.run_until_complete(value)
        if is_streamed(value):
            pieces = blocking_iterator(value)
            return list(pieces) if keeps else deque(pieces, maxlen=0).clear()
        return value


def _names(method: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(method).parameters


def merge_config(base: dict[str, Any], override: dict[str, Any]) -> dict[str, Any]:
    """Job config over the API's: maps recursively, everything else replaced; inputs are not mutated."""
    merged = copy.deepcopy(base)
    for key, value in override.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = merge_config(merged[key], value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def load_class(init: Init) -> Any:
    """Loads the class that an INIT message names, and checks it.

    Raises PredictorError if it is missing or its methods have other arguments. Exceptions of user code pass through.
    """
    predictor_class = _load_class(init["project"], init["path"], init.get("python_path"))
    _check_class(predictor_class)
    return predictor_class


def make_predictor(predictor_class: Any, init: Init) -> Predictor:
    """Makes an instance for the job or API of an INIT message. Exceptions of user code pass through."""
    os.chdir(init["project"])
    config = merge_config(json.loads(init["api_config"]), json.loads(init.get("job_config") or "{}"))
    job_spec = _job_spec(init)
    arguments: Arguments = {"config": config}
    if "job_spec" in inspect.signature(predictor_class.__init__).parameters:
        arguments["job_spec"] = job_spec
    return Predictor(predictor_class(**arguments), job_spec)


def _job_spec(init: Init) -> dict[str, Any] | None:
    """None in real time. `config` comes as the submitter's text, so that its numbers keep their digits."""
    spec = init.get("job_spec")
    return spec if spec is None else {**spec, "config": json.loads(init.get("job_config") or "{}")}


def _load_class(project: str, path: str, python_path: str | None) -> Any:
    os.chdir(project)
    for root in (project, os.path.join(project, python_path) if python_path else None):
        if root is not None and root not in sys.path:
            sys.path.insert(0, root)
    spec: Any = importlib.util.spec_from_file_location("quern_predictor", os.path.join(project, path))
    module = importlib.util.module_from_spec(spec)
    sys.modules["quern_predictor"] = module
    spec.loader.exec_module(module)
    try:
        return module.PythonPredictor
    except AttributeError:
        raise PredictorError("signature", "%s: class PythonPredictor is not defined" % path) from None


def _check_class(predictor_class: Any) -> None:
    if not inspect.isclass(predictor_class):
        raise PredictorError("signature", "PythonPredictor is not a class")
    errors = []
    for method in METHODS:
        function = getattr(predictor_class, method, None)
        if function is None or function is object.__init__:
            if method in REQUIRED:
                errors.append('required method "%s" is not defined' % method)
            continue
        if method == "__init__" and inspect.iscoroutinefunction(function):
            errors.append("__init__ cannot be async; write it as a plain def")
        errors.extend(_method_errors(method, function))
    if errors:
        raise PredictorError("signature", "class PythonPredictor: " + "; ".join(errors))


def _method_errors(method: str, function: Callable[..., Any]) -> list[str]:
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = [p for p in inspect.signature(function).parameters.values() if p.kind not in variable]
    with_default = {p.name for p in parameters if p.default is not inspect.Parameter.empty}
    return signature_errors(method, [p.name for p in parameters], with_default)
