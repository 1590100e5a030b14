"""Finds the user's class, checks it, makes its instance, and calls its methods by the names they declare."""

import copy
import importlib.util
import inspect
import json
import os
import sys

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
        names = inspect.signature(instance.predict).parameters
        self._declared = tuple(name for name in ("payload", "query_params", "headers", "batch_id") if name in names)
        self.takes_payload = "payload" in self._declared
        self.wants = [name for name in ("query_params", "headers") if name in self._declared]
        self.on_job_complete = getattr(instance, "on_job_complete", None)
        self._only_payload = self._declared == ("payload",)

    def predict(self, payload, query_params=None, headers=None, batch_id=None):
        if self._only_payload:
            return self.instance.predict(payload=payload)
        given = {"payload": payload, "query_params": query_params, "headers": headers, "batch_id": batch_id}
        return self.instance.predict(**{name: given[name] for name in self._declared})


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
        arguments["job_spec"] = init.get("job_spec")
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
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            errors.append("async def %s is not supported yet; write it as a plain def" % method)
        errors.extend(_method_errors(method, function))
    if errors:
        raise PredictorError("signature", "class PythonPredictor: " + "; ".join(errors))


def _method_errors(method, function):
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = [p for p in inspect.signature(function).parameters.values() if p.kind not in variable]
    with_default = {p.name for p in parameters if p.default is not inspect.Parameter.empty}
    return signature_errors(method, [p.name for p in parameters], with_default)
