"""Checks a predictor file without running it: `python -m quern_runtime.check_predictor FILE`.

The rule: docs/contract/predictor.md#checked-without-running

Prints a JSON list of {line, message}; an empty list means that the syntax tree shows no error. `former`
is true if the message is about a name of Cortex.
"""

from __future__ import annotations

import ast
import json
import sys

from .former import FORMER_ARGUMENTS, FORMER_CLASSES
from .signatures import METHODS, REQUIRED, signature_errors


def check_source(source: bytes | str, filename: str) -> list[dict[str, object]]:
    """The errors of the class, as [{line, message, former?}]; empty if there are none.

    A class that is imported or assigned here is checked on load.
    """
    try:
        tree = ast.parse(source, filename)
    except SyntaxError as error:
        return [_fault(error.lineno or 1, "syntax error: %s" % error.msg)]
    except (RecursionError, MemoryError):
        return [_fault(1, "an expression is nested too deep for Python to read")]
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == "PythonPredictor"]
    if not classes:
        if _is_bound_elsewhere(tree):
            return []
        former = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name in FORMER_CLASSES]
        if former:
            cure = FORMER_CLASSES[former[0].name]
            return [_fault(former[0].lineno, "class PythonPredictor is not defined; " + cure, is_former=True)]
        cure = "define it with __init__(self, config) and predict(self, payload)"
        return [_fault(1, "class PythonPredictor is not defined; " + cure)]
    return _check_class(classes[-1])


def _check_class(node: ast.ClassDef) -> list[dict[str, object]]:
    methods = {child.name: child for child in node.body if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))}
    errors = []
    if not node.bases:
        for name in REQUIRED:
            if name not in methods:
                errors.append(_fault(node.lineno, 'class PythonPredictor: required method "%s" is not defined' % name))
    for name in METHODS:
        if name in methods:
            errors.extend(_check_method(methods[name]))
    return errors


def _check_method(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[dict[str, object]]:
    if isinstance(node, ast.AsyncFunctionDef) and node.name == "__init__":
        return [_fault(node.lineno, "class PythonPredictor: __init__ cannot be async; write it as a plain def")]
    positional = node.args.posonlyargs + node.args.args
    with_default = {arg.arg for arg in positional[len(positional) - len(node.args.defaults) :]}
    with_default |= {
        arg.arg for arg, default in zip(node.args.kwonlyargs, node.args.kw_defaults) if default is not None
    }
    names = [arg.arg for arg in positional + node.args.kwonlyargs]
    messages = signature_errors(node.name, names, with_default)
    is_former = any(name in FORMER_ARGUMENTS and name not in with_default for name in names)
    return [_fault(node.lineno, "class PythonPredictor: " + message, is_former) for message in messages]


def _is_bound_elsewhere(tree: ast.AST) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and any(
            (alias.asname or alias.name) in ("PythonPredictor", "*") for alias in node.names
        ):
            return True
        if isinstance(node, ast.Name) and node.id == "PythonPredictor" and isinstance(node.ctx, ast.Store):
            return True
    return False


def _fault(line: int, message: str, is_former: bool = False) -> dict[str, object]:
    fault: dict[str, object] = {"line": line, "message": message}
    return {**fault, "former": True} if is_former else fault


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as source_file:
        print(json.dumps(check_source(source_file.read(), sys.argv[1])))
