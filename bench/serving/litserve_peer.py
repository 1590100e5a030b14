"""LitServe, one worker: `python litserve_peer.py PORT`."""

import sys

import litserve as ls


class Noop(ls.LitAPI):
    def setup(self, device):
        pass

    def decode_request(self, request):
        return request

    def predict(self, payload):
        return "versicolor" if payload["petal_length"] > 2 else "setosa"

    def encode_response(self, output):
        return output


if __name__ == "__main__":
    ls.LitServer(Noop(api_path="/noop"), accelerator="cpu", workers_per_device=1).run(
        port=int(sys.argv[1]), host="127.0.0.1", generate_client_file=False, log_level="error", access_log=False
    )
