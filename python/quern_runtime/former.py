"""Names that predictors for Cortex 0.25 to 0.34 may use and Quern does not have, each with a cure.

Keys of the configuration are in src/contracts/config/former-keys.ts.
"""

from __future__ import annotations

_LOAD = "load the model in __init__, from a path in config"

# Arguments that Cortex passes. One with a default value is accepted: nothing is passed or reported.
FORMER_ARGUMENTS = {
    "python_client": "is not supported: %s, and remove the argument" % _LOAD,
    "tensorflow_client": "is not supported: %s with tensorflow, call it in predict(), and remove the argument" % _LOAD,
    "onnx_client": "is not supported: make an onnxruntime.InferenceSession in __init__, run it in predict(), "
    "and remove the argument",
    "load_model": "is not supported: %s, and remove the argument" % _LOAD,
    "metrics_client": "is not supported: send your own metrics with a client library from requirements.txt, "
    "and remove the argument",
    "module_proto_pb2": "is not supported, because there is no gRPC: predict() gets JSON or bytes as payload; "
    "remove the argument",
    "context": "is not supported, because there is no gRPC: name headers instead",
    "request_id": "is not supported: name batch_id in a job, or headers in a real-time API",
}

# Classes that Cortex looks for in the file.
FORMER_CLASSES = {
    "Handler": "rename class Handler to PythonPredictor, and its method handle_post (or handle_batch) to predict",
    "Task": "rename class Task to PythonPredictor, move its code into predict(self, payload), "
    "and submit a job with one item",
    "TensorFlowPredictor": "rename class TensorFlowPredictor to PythonPredictor, "
    "and load the model with tensorflow in __init__",
    "ONNXPredictor": "rename class ONNXPredictor to PythonPredictor, "
    "and make an onnxruntime.InferenceSession in __init__",
}
