"""MLServer, one process: `mlserver start .` in this directory. It speaks the Open Inference Protocol, no plain JSON."""

from mlserver import MLModel
from mlserver.types import InferenceRequest, InferenceResponse, ResponseOutput


class Noop(MLModel):
    async def load(self):
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        name = "versicolor" if payload.inputs[0].data[2] > 2 else "setosa"
        output = ResponseOutput(name="species", shape=[1], datatype="BYTES", data=[name])
        return InferenceResponse(model_name="noop", outputs=[output])
