/** The rules for a configuration that depend on the other deployed APIs and on the machine: each with its message. */

import { describe, expect, it } from "vitest";
import { type ParsedApi, readConfig } from "../../../src/apis/config/parse-config.ts";
import { deploymentErrors, type Surroundings } from "../../../src/apis/deploy/deployment-rules.ts";
import type { AnyVersion } from "../../../src/apis/records/api-rows.ts";
import { CLUSTER_KEYS, type ClusterKey, clusterKeyCure } from "../../../src/contracts/config/cluster-keys.ts";

/** The entry as it is parsed, with its paths as positions. */
function apiOf(entry: object): ParsedApi {
  const { apis, errors } = readConfig(JSON.stringify([entry]), "quern.yaml");
  expect(errors).toEqual([]);
  return { ...apis[0]!, positionOf: (path) => path.join("/") };
}

const predictor = { path: "predictor.py" };
const realtime = (name: string, more: object = {}) => apiOf({ name, predictor, ...more });
const batch = (name: string, more: object = {}) => apiOf({ name, kind: "BatchAPI", predictor, ...more });
const splitter = (name: string, ...names: string[]) =>
  apiOf({
    ...{ name, kind: "TrafficSplitter" },
    apis: names.map((each, at) => ({ name: each, weight: at === 0 ? 100 - 10 * (names.length - 1) : 10 })),
  });
function splitterWithGpu(): ParsedApi {
  const { compute } = realtime("a", onGpus(1)).config;
  const { config, ...rest } = splitter("s", "a");
  return { ...rest, config: { ...config, compute } as ParsedApi["config"] };
}
const deployedAs = ({ config }: ParsedApi) => ({ name: config.name, config }) as AnyVersion;
const at = (endpoint: string) => ({ networking: { endpoint } });
const onGpus = (gpu: number) => ({ compute: { gpu } });
const after = (...apis: ParsedApi[]) => apis.map(({ config }) => config);

type Case = [string, ParsedApi, Partial<Surroundings>, [pointer: string, detail: string][]];

function errorsOf(api: ParsedApi, around: Partial<Surroundings>) {
  const { deployed, after: others = after(api), gpus = 0, engine = "local" } = around;
  return deploymentErrors(api, { deployed, after: others, gpus, engine });
}

const CASES: Case[] = [
  ["a new API", realtime("a"), {}, []],
  ["an API of the same kind as before", realtime("a"), { deployed: deployedAs(realtime("a")) }, []],
  [
    "an API of another kind than before",
    batch("a"),
    { deployed: deployedAs(realtime("a")) },
    [["kind", "a: kind: cannot change from RealtimeAPI while deployed; delete the API first"]],
  ],
  [
    "an API whose kind is wrong, so that its change cannot be checked",
    { ...batch("a"), hasKind: false },
    { deployed: deployedAs(realtime("a")) },
    [],
  ],
  [
    "an API with the address of another",
    realtime("a", at("/b")),
    { after: after(realtime("c"), batch("b")) },
    [
      [
        "networking/endpoint",
        "a: networking.endpoint: /b conflicts with b at /b; give one of them another address",
      ],
    ],
  ],
  [
    "an API with an address below another's",
    realtime("a", at("/x/y")),
    { after: after(realtime("b", at("/x"))) },
    [
      [
        "networking/endpoint",
        "a: networking.endpoint: /x/y conflicts with b at /x; give one of them another address",
      ],
    ],
  ],
  [
    "an API with an address beside another's",
    realtime("a", at("/xy")),
    { after: after(realtime("b", at("/x"))) },
    [],
  ],
  ["an API with its own address of before", realtime("a"), { after: after(realtime("a")) }, []],
  ["a splitter to RealtimeAPIs", splitter("s", "a", "b"), { after: after(realtime("a"), realtime("b")) }, []],
  [
    "a splitter to APIs that are not there, or of other kinds",
    splitter("s", "a", "b", "c", "d"),
    { after: after(realtime("a"), batch("b"), splitter("d", "a", "e")) },
    [
      ["apis/1", "s: apis.1.name: b is a BatchAPI; a TrafficSplitter sends to RealtimeAPIs"],
      [
        "apis/2",
        "s: apis.2.name: c is not deployed, and not in this file; a TrafficSplitter sends to RealtimeAPIs",
      ],
      ["apis/3", "s: apis.3.name: d is a TrafficSplitter; a TrafficSplitter sends to RealtimeAPIs"],
    ],
  ],
  [
    "a splitter with a GPU, which another rule refuses",
    splitterWithGpu(),
    { after: after(realtime("a")) },
    [],
  ],
  ["an API whose GPUs the cluster has", realtime("a", onGpus(8)), { engine: "kubernetes" }, []],
  [
    "an API with what workers in pods do not do",
    realtime("a", { predictor: { ...predictor, python: "3.11", max_requests: 5, max_age: "1h" } }),
    { engine: "kubernetes" },
    [
      [
        "predictor/python",
        "a: predictor.python: is not there yet with --engine kubernetes: the worker's image decides which Python runs: leave it out, and build the image with that Python",
      ],
    ],
  ],
  [
    "a job's workers in pods, which are replaced between two batches, and belong to one job",
    batch("a", { predictor: { ...predictor, max_requests: 5, reuse_worker: true } }),
    { engine: "kubernetes" },
    [
      [
        "predictor/reuse_worker",
        "a: predictor.reuse_worker: is not there yet with --engine kubernetes: a pod belongs to one job: leave it out",
      ],
    ],
  ],
  ["an API with as many GPUs as the machine has", realtime("a", onGpus(2)), { gpus: 2 }, []],
  ...(
    [
      [2, 0, "no GPU"],
      [2, 1, "1 GPU"],
      [3, 2, "2 GPUs"],
    ] as const
  ).map(
    ([wanted, gpus, has]): Case => [
      `an API with ${wanted} GPUs on a machine with ${has}`,
      realtime("a", onGpus(wanted)),
      { gpus },
      [
        [
          "compute/gpu",
          `a: compute.gpu: ${wanted} requested, but this server offers ${has} (see nvidia-smi, or \`quern up --gpus\`); remove the key, or deploy to a machine that has enough`,
        ],
      ],
    ],
  ),
];

describe("the rules of a deployment", () => {
  it.each(CASES)("check %s", (_, api, around, expected) => {
    expect(errorsOf(api, around)).toEqual(expected.map(([pointer, detail]) => ({ pointer, detail })));
  });

  it.each(Object.keys(CLUSTER_KEYS) as ClusterKey[])(
    "refuse compute.%s for a process of the server's machine, and take it for pods",
    (key) => {
      const names = { image: "i", service_account: "s", secrets: ["s"], queue: "q" };
      const values = { node_selector: {}, tolerations: [], ...names };
      const placed = { compute: { [key]: values[key] } };
      const detail = `a: compute.${key}: ${clusterKeyCure(key)}`;
      const refusal = [{ pointer: `compute/${key}`, detail }];
      const kinds = key === "queue" ? [batch] : [realtime, batch];
      for (const kind of kinds) {
        expect(errorsOf(kind("a", placed), {})).toEqual(refusal);
        expect(errorsOf(kind("a", placed), { engine: "kubernetes" })).toEqual([]);
      }
    },
  );

  it("report all errors at once", () => {
    const api = batch("a", { ...at("/b"), ...onGpus(1) });
    const around = { deployed: deployedAs(realtime("a")), after: after(realtime("b")) };
    expect(errorsOf(api, around).map(({ pointer }) => pointer)).toEqual([
      ...["kind", "networking/endpoint", "compute/gpu"],
    ]);
  });
});
