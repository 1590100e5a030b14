"""Finds the user's class, checks it, makes its instance, and calls its methods by the names they declare."""

import asyncio
import copy
import importlib.util
import inspect
import json
import os
import sys

from .answers import blocking_iterator, is_streamed
from .signatures import METHODS, REQUIRED, signature_errors


class PredictorError(Exception):
    """The class cannot be used; `stage` is `load`, `signature` or `init`."""

    def __init__(self, stage, message):
        super().__init__(message)
        self.stage = stage


class Predictor:
    """The user's instance with the parameters that its predict() declares."""

    def __init__(self, instance):
        self.instance = instance
        self._predict = instance.predict
        self._declared = [name for name in ("payload", "query_params", "headers", "batch_id") if name in _names(instance.predict)]
        self.takes_payload = "payload" in self._declared
        # Of our own: the payload is the body as it came.
        self.takes_body = getattr(instance, "takes_body", False)
        self.wants = [name for name in ("query_params", "headers") if name in self._declared]
        self.is_async = inspect.iscoroutinefunction(instance.predict) or inspect.isasyncgenfunction(instance.predict)
        self.on_job_complete = getattr(instance, "on_job_complete", None)
        self.post_predict = self._post_predict if hasattr(instance, "post_predict") else None
        self._loop = None

    def call(self, arguments):
        """predict() with the arguments of a request; of an async one, what is to be awaited."""
        if "batch_id" in self._declared:
            return self._predict(batch_id=None, **arguments)
        return self._predict(**arguments)

    def predict_batch(self, payload, batch_id):
        """predict() with a batch of a job, to its end: an async one runs here, and a generator is run through."""
        given = {"payload": payload, "query_params": None, "headers": None, "batch_id": batch_id}
        self._finish(self._predict(**{name: given[name] for name in self._declared}))

    def complete_job(self):
        if self.on_job_complete is not None:
            self._finish(self.on_job_complete())

    def _post_predict(self, response, arguments):
        given = {"response": response, "payload": None, "query_params": None, "headers": None, **arguments}
        return self.instance.post_predict(**{name: given[name] for name in given if name in _names(self.instance.post_predict)})

    def _finish(self, value):
        if value is None:
            return
        if hasattr(value, "__await__"):
            self._loop = self._loop or asyncio.new_event_loop()
            value = self._loop.run_until_complete(value)
        if is_streamed(value):
            for _ in blocking_iterator(value):
                pass


def _names(method):
    return inspect.signature(method).parameters


def merge_config(base, override):
    """Job config over the API's (decision 4.2): maps recursively, everything else replaced; inputs are not mutated."""
    merged = copy.deepcopy(base)
    for key, value in override.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = merge_config(merged[key], value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def load_predictor(init):
    """Loads the class that an INIT message names and makes its instance. User code's own exceptions pass through."""
    predictor_class = _load_class(init["project"], init["path"], init.get("python_path"))
    _check_class(predictor_class)
    config = merge_config(json.loads(init["api_config"]), json.loads(init.get("job_config") or "{}"))
    arguments = {"config": config}
    if "job_spec" in inspect.signature(predictor_class.__init__).parameters:
        # `config` comes as the submitter's text, so that its numbers are what was sent.
        spec = init.get("job_spec")
        arguments["job_spec"] = spec if spec is None else {**spec, "config": json.loads(init.get("job_config") or "{}")}
    return Predictor(predictor_class(**arguments))


def _load_class(project, path, python_path):
    os.chdir(project)
    for root in (project, os.path.join(project, python_path) if python_path else None):
        if root is not None and root not in sys.path:
            sys.path.insert(0, root)
    spec = importlib.util.spec_from_file_location("quern_predictor", os.path.join(project, path))
    module = importlib.util.module_from_spec(spec)
    sys.modules["quern_predictor"] = module
    spec.loader.exec_module(module)
    try:
        return module.PythonPredictor
    except AttributeError:
        raise PredictorError("signature", "%s: class PythonPredictor is not defined" % path) from None


def _check_class(predictor_class):
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


def _method_errors(method, function):
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = [p for p in inspect.signature(function).parameters.values() if p.kind not in variable]
    with_default = {p.name for p in parameters if p.default is not inspect.Parameter.empty}
    return signature_errors(method, [p.name for p in parameters], with_default)
