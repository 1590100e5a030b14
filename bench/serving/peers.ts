/** The peers of real-time serving: how each is installed, started and called. */
import { join } from "node:path";
import { root } from "../../test/harness/server.ts";

export const FLOWER = { sepal_length: 5.2, sepal_width: 3.6, petal_length: 1.4, petal_width: 0.3 };
const INFERENCE = {
  inputs: [{ name: "flower", shape: [1, 4], datatype: "FP32", data: [5.2, 3.6, 1.4, 0.3] }],
};
export const LARGE = { rows: Array.from({ length: 1_070 }, (_, n) => ({ ...FLOWER, n })) };

export interface Peer {
  name: string;
  packages: string[];
  /** The command in its environment's `bin`, and how it is started. */
  command: (bin: string, port: number) => [command: string, args: string[], env?: Record<string, string>];
  path: string;
  payload: unknown;
  atLeast: number;
}

export const peersDirectory = join(root, "bench", "serving");

export const PEERS: readonly Peer[] = [
  {
    name: "MLServer",
    packages: ["mlserver"],
    command: (bin, port) => [
      join(bin, "mlserver"),
      ["start", join(peersDirectory, "mlserver_peer")],
      ...([
        {
          MLSERVER_HTTP_PORT: String(port),
          MLSERVER_GRPC_PORT: String(port + 1),
          MLSERVER_METRICS_PORT: String(port + 2),
          MLSERVER_PARALLEL_WORKERS: "0",
          MLSERVER_DEBUG: "false",
        },
      ] as const),
    ],
    path: "/v2/models/noop/infer",
    payload: INFERENCE,
    atLeast: 8,
  },
  {
    name: "LitServe",
    packages: ["litserve"],
    command: (bin, port) => [join(bin, "python"), [join(peersDirectory, "litserve_peer.py"), String(port)]],
    path: "/noop",
    payload: FLOWER,
    atLeast: 20,
  },
  {
    name: "BentoML",
    packages: ["bentoml"],
    command: (bin, port) => [
      join(bin, "bentoml"),
      [
        "serve",
        "bentoml_peer:Noop",
        "--port",
        String(port),
        "--host",
        "127.0.0.1",
        "--working-dir",
        peersDirectory,
        "-q",
      ],
      {
        BENTOML_CONFIG_OPTIONS: "api_server.logging.access.enabled=false api_server.metrics.enabled=false",
        BENTOML_DO_NOT_TRACK: "True",
      },
    ],
    path: "/noop",
    payload: FLOWER,
    atLeast: 20,
  },
  {
    name: "Ray Serve",
    packages: ["ray[serve]"],
    command: (bin, port) => [
      join(bin, "python"),
      [join(peersDirectory, "ray_peer.py"), String(port)],
      { RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO: "0" },
    ],
    path: "/noop",
    payload: FLOWER,
    atLeast: 20,
  },
];
