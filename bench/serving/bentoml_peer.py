"""BentoML, one worker: `bentoml serve bentoml_peer:Noop`."""

import bentoml


@bentoml.service(workers=1)
class Noop:
    @bentoml.api(route="/noop")
    def noop(self, sepal_length: float, sepal_width: float, petal_length: float, petal_width: float) -> str:
        return "versicolor" if petal_length > 2 else "setosa"
