"""The runtime needs nothing but Python (docs/contract/predictor.md#runtime-without-packages)."""

import ast
import sys
import unittest
from pathlib import Path

import quern_launcher
import quern_runtime


class PackagesTest(unittest.TestCase):
    @unittest.skipIf(sys.version_info < (3, 10), "this Python does not list its own modules")
    def test_the_runtime_imports_only_the_standard_library(self) -> None:
        imported = {
            name.partition(".")[0]
            for package in (quern_runtime, quern_launcher)
            for file in Path(package.__file__).parent.rglob("*.py")
            for node in ast.walk(ast.parse(file.read_text()))
            for name in imports_of(node)
        }
        self.assertIn("asyncio", imported)
        self.assertEqual(imported - sys.stdlib_module_names, set())


def imports_of(node: ast.AST) -> list[str]:
    """The modules that this statement imports by an absolute name."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
        return [node.module]
    return []
