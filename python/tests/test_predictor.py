"""Classes as users write them, right and wrong: at the load, and on the syntax tree alone."""

import json
import os
import struct
import tempfile
import textwrap
import time
import unittest

from quern_runtime.answers import encode_answer
from quern_runtime.check_predictor import check_source
from quern_runtime.faults import PayloadError, fault
from quern_runtime.former import FORMER_ARGUMENTS, FORMER_CLASSES
from quern_runtime.http_payload import parse_payload
from quern_runtime.load_predictor import PredictorError, load_class, make_predictor, merge_config
from quern_runtime.missing_module import advice
from quern_runtime.note import Note

GOOD = "class PythonPredictor:\n    def __init__(self, config):\n        self.config = config\n    def predict(self, payload):\n        return payload\n"

# (source, part of the message)
WRONG = [
    ("x = 1\n", "class PythonPredictor is not defined"),
    ("class PythonPredictor:\n    def __init__(self, config): pass\n", 'required method "predict" is not defined'),
    ("class PythonPredictor:\n    def predict(self): pass\n", '"__init__" is not defined'),
    (
        "class PythonPredictor:\n    def __init__(self): pass\n    def predict(self): pass\n",
        '"config" is a required argument',
    ),
    (
        "class PythonPredictor:\n    def __init__(self, config): pass\n    def predict(self, data): pass\n",
        '"data" is not a supported argument; supported: self, payload, query_params, headers, batch_id',
    ),
    (
        "class PythonPredictor:\n    def __init__(self, config): pass\n    def predict(self): pass\n    async def __init__(self, config): pass\n",
        "__init__ cannot be async",
    ),
    (
        "class PythonPredictor:\n    def __init__(self, config): pass\n    def predict(self): pass\n    def on_job_complete(self, x): pass\n",
        '"x" is not a supported argument',
    ),
    (
        "class PythonPredictor:\n    def __init__(self, config, python_client): pass\n    def predict(self): pass\n",
        '"python_client" is not supported: load the model in __init__',
    ),
]


class Signatures(unittest.TestCase):
    def load(self, source, **init):
        project = tempfile.mkdtemp()
        with open(os.path.join(project, "p.py"), "w") as file:
            file.write(textwrap.dedent(source))
        before = os.getcwd()
        try:
            message = {"project": project, "path": "p.py", "api_config": "{}", **init}
            return make_predictor(load_class(message), message)
        finally:
            os.chdir(before)

    def test_wrong_classes_are_refused_with_the_allowed_names(self):
        for source, message in WRONG:
            with self.subTest(message):
                self.assertIn(message, " ".join(fault["message"] for fault in check_source(source, "p.py")))
                with self.assertRaises(PredictorError) as caught:
                    self.load(source)
                self.assertIn(message, str(caught.exception))

    def test_names_of_cortex_are_refused_with_a_cure(self):
        for name, cure in FORMER_ARGUMENTS.items():
            method = (
                "predict(self, payload, %s)"
                if name in ("request_id", "context")
                else "predict(self): pass\n    def post_predict(self, %s)"
            )
            source = "class PythonPredictor:\n    def __init__(self, config): pass\n    def %s: pass\n" % (
                method % name
            )
            [fault] = check_source(source, "p.py")
            self.assertIn('"%s" %s' % (name, cure), fault["message"])
            self.assertTrue(fault["former"])
        for name, cure in FORMER_CLASSES.items():
            source = "import os\nclass %s:\n    def __init__(self, config): pass\n" % name
            message = "class PythonPredictor is not defined; " + cure
            self.assertEqual(check_source(source, "p.py"), [{"line": 2, "message": message, "former": True}])

    def test_a_name_of_cortex_with_a_default_is_accepted(self):
        source = "class PythonPredictor:\n    def __init__(self, config, python_client=None): pass\n    def predict(self, payload): pass\n    def load_model(self, path): pass\n"
        self.assertEqual(check_source(source, "p.py"), [])

    def test_the_syntax_tree_alone_shows_syntax_errors_with_their_line(self):
        self.assertEqual([f["line"] for f in check_source("x = 1\ndef (:\n", "p.py")], [2])

    def test_expressions_that_are_too_deep_for_python_are_refused(self):
        for source in (
            "x = " + "lambda: " * 50000 + "1\n",
            "x = " + "-" * 50000 + "1\n",
            "x = a" + ".b" * 50000 + "\n",
        ):
            # Each Python has limits of its own.
            for found in check_source(GOOD + source, "p.py"):
                self.assertRegex(str(found["message"]), "too deep|too many nested|too complex")

    def test_errors_that_the_syntax_tree_cannot_show_are_found_on_load(self):
        for source in (
            "from base import PythonPredictor\n",
            "PythonPredictor = make()\n",
            "class PythonPredictor(Base):\n    pass\n",
        ):
            self.assertEqual(check_source(source, "p.py"), [])

    def test_a_missing_module_is_reported_with_the_package_to_add(self):
        def of(source):
            with self.assertRaises(ImportError) as caught:
                exec(source, {})
            return advice(caught.exception)

        self.assertEqual(
            of("import no_such_module"), "add it to requirements.txt, or to the project if it is a file of yours"
        )
        self.assertIn(
            "requirements.txt, where it is called scikit-learn", advice(ModuleNotFoundError("", name="sklearn"))
        )
        # The package exists, in a version without the module.
        self.assertIn("the json that is installed has no such module", of("import json.gone"))
        self.assertIsNone(of("from json import gone"))
        self.assertIsNone(advice(ValueError()))

    def test_extra_arguments_with_defaults_are_accepted(self):
        source = "class PythonPredictor:\n    def __init__(self, config, size=3, *a, **k): pass\n    def predict(self, payload, top=5): return top\n"
        self.assertEqual(check_source(source, "p.py"), [])
        self.assertEqual(self.load(source).call({"payload": 1}), 5)

    def test_arguments_are_passed_by_declared_name(self):
        source = "class PythonPredictor:\n    def __init__(self, job_spec, config): self.spec = job_spec\n    def predict(self, batch_id, payload, headers): self.seen = [payload, headers, batch_id, self.spec]\n"
        predictor = self.load(source, job_spec={"job_id": "j"}, job_config='{"one":1.0,"big":12345678901234567890}')
        spec = {"job_id": "j", "config": {"one": 1.0, "big": 12345678901234567890}}
        self.assertEqual(predictor.wants, ["headers"])
        predictor.call({"payload": "p", "headers": {"a": "b"}})
        self.assertEqual(predictor.instance.seen, ["p", {"a": "b"}, None, spec])
        predictor.predict_batch("p", "j-1")
        self.assertEqual(predictor.instance.seen, ["p", None, "j-1", spec])
        self.assertIsInstance(predictor.instance.seen[3]["config"]["one"], float)

    def test_post_predict_gets_what_it_declares_and_predict_only_its_own_arguments(self):
        source = (
            "class PythonPredictor:\n    def __init__(self, config): pass\n    def predict(self, payload, batch_id): return payload\n"
            "    def post_predict(self, response, headers): self.seen = [response, headers]\n"
        )
        predictor = self.load(source)
        self.assertEqual(predictor.wants, ["headers"])
        arguments = {"payload": "p", "headers": {"a": "b"}}
        predictor.post_predict(predictor.call(arguments), arguments)
        self.assertEqual(predictor.instance.seen, ["p", {"a": "b"}])

    def test_a_batch_runs_async_predictors_and_generators_to_their_end(self):
        for kind, body in (
            ("async def", "await asyncio.sleep(0); self.seen.append(payload)"),
            ("def", "self.seen.append(payload); yield 1"),
        ):
            source = (
                "import asyncio\nclass PythonPredictor:\n    def __init__(self, config): self.seen = []\n    %s predict(self, payload): %s\n"
                % (kind, body)
            )
            predictor = self.load(source)
            predictor.predict_batch("p", "j-1")
            self.assertEqual(predictor.instance.seen, ["p"])

    def test_config_keeps_every_digit_and_is_merged(self):
        predictor = self.load(
            GOOD, api_config='{"big":12345678901234567890,"deep":{"a":1}}', job_config='{"deep":{"b":2}}'
        )
        self.assertEqual(predictor.instance.config, {"big": 12345678901234567890, "deep": {"a": 1, "b": 2}})


class Merge(unittest.TestCase):
    def test_maps_merge_recursively_and_everything_else_is_replaced(self):
        base = {"k1": "v1", "k2": "v2", "k3": {"k1": "v1", "k2": "v2"}, "list": [1, 2]}
        override = {"k1": "V1", "k4": "V4", "k3": {"k1": "V1", "k4": "V4"}, "list": [3]}
        before = json.dumps([base, override])
        merged = merge_config(base, override)
        self.assertEqual(
            merged, {"k1": "V1", "k2": "v2", "k4": "V4", "k3": {"k1": "V1", "k2": "v2", "k4": "V4"}, "list": [3]}
        )
        merged["k3"]["k9"] = 1
        self.assertEqual(json.dumps([base, override]), before)


class Payloads(unittest.TestCase):
    def test_bodies_that_are_not_json_are_refused(self):
        for body in (b"", b"  ", b"{", b"\xff", b"[" * 100000):
            with self.assertRaises(PayloadError):
                parse_payload(None, body)

    def test_predictions_are_compact_json(self):
        self.assertEqual(encode_answer({"a": ["é", 1.5, None]}), (b"", '{"a":["é",1.5,null]}'.encode()))

    def test_values_that_json_cannot_hold_are_named(self):
        for value, name in (({1}, "set"), (float("nan"), "JSON compliant"), ([object()], "object")):
            with self.assertRaises((TypeError, ValueError)) as caught:
                encode_answer(value)
            self.assertIn(name, str(caught.exception))

    def test_an_exception_that_cannot_print_itself_is_still_reported(self):
        class Sly(Exception):
            def __str__(self):
                raise RuntimeError

        self.assertEqual(fault("predict", Sly())["message"], "(its message could not be read)")


class Notes(unittest.TestCase):
    def test_the_next_process_learns_which_delivery_was_in_hand(self):
        path = os.path.join(tempfile.mkdtemp(), "note")
        note = Note(path)
        self.assertIsNone(note.died_in)
        note.set_epoch(7)
        note.take_in_hand(1, 5, 41)
        self.assertEqual(Note(path).died_in, {"epoch": 7, "delivery": 5, "batch_index": 41})
        self.assertIsNone(Note(path).died_in)

    def test_a_finished_delivery_was_not_in_hand(self):
        path = os.path.join(tempfile.mkdtemp(), "note")
        note = Note(path)
        note.take_in_hand(1, 5, 41)
        note.put_down()
        self.assertIsNone(Note(path).died_in)

    def test_it_says_since_when_user_code_runs_also_for_a_piece_of_a_stream(self):
        path = os.path.join(tempfile.mkdtemp(), "note")
        note = Note(path)

        def since():
            with open(path, "rb") as file:
                return struct.unpack_from("<B3xQ", file.read(), 20)

        times = [time.monotonic_ns()]
        for begin in (lambda: note.take_in_hand(1, 5, 41), note.continue_earlier):
            begin()
            busy, at = since()
            self.assertEqual(busy, 1)
            times += [at, time.monotonic_ns()]
            note.put_down()
            self.assertEqual(since()[0], 0)
        self.assertEqual(times, sorted(times))


if __name__ == "__main__":
    unittest.main()
