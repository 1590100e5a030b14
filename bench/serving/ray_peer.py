"""Ray Serve, one replica: `python ray_peer.py PORT`."""

import sys
import time

from ray import serve
from starlette.requests import Request


@serve.deployment(num_replicas=1, max_ongoing_requests=128)
class Noop:
    async def __call__(self, request: Request):
        payload = await request.json()
        return "versicolor" if payload["petal_length"] > 2 else "setosa"


serve.start(
    http_options={"host": "127.0.0.1", "port": int(sys.argv[1])},
    logging_config={"log_level": "ERROR", "enable_access_log": False},
)
serve.run(Noop.bind(), route_prefix="/noop")
print("ready", flush=True)
time.sleep(3600)
