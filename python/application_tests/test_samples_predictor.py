"""The errors of samples that cannot be predicted."""

import unittest

from quern_application.samples_predictor import _failed


class Failures(unittest.TestCase):
    def test_name_half_of_a_surrogate_pair_as_json_does(self):
        answer = _failed({"side": "\ud800"}, ValueError("no value \ud800 for é"))
        self.assertEqual(answer.status_code, 406)
        body = 'prediction failed for sample: {"side": "\\ud800"} (no value \\ud800 for é)'
        self.assertEqual(answer.body.encode(), body.encode())


if __name__ == "__main__":
    unittest.main()
