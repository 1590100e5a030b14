import { describe, expect, it } from "vitest";
import { readConfig } from "../../../src/apis/config/parse-config.ts";
import { parseDurationMs } from "../../../src/contracts/config/durations.ts";
import { FORMER_GUIDE, FORMER_KEYS } from "../../../src/contracts/config/former-keys.ts";

const errorsOf = (text: string) =>
  readConfig(text, "quern.yaml").errors.map(({ pointer, detail }) => `${pointer} ${detail}`);
const parseConfig = (text: string, file: string) => readConfig(text, file).apis;

const api = (extra: string) => `- name: a\n  predictor: {path: p.py}\n${extra}`;

describe("a configuration", () => {
  it("has the defaults of the reference", () => {
    const [{ config, configText }] = parseConfig(
      "- name: a\n  predictor:\n    path: p.py\n",
      "quern.yaml",
    ) as [ReturnType<typeof parseConfig>[number]];
    expect(config).toMatchObject({
      kind: "RealtimeAPI",
      predictor: { type: "python", env: {}, expose_errors: false },
      compute: { cpu: "200m", gpu: 0 },
      autoscaling: { min_replicas: 1 },
    });
    expect(configText).toBe("{}");
  });

  it.each([
    ["queue: gpus", "queue: is for a BatchAPI only, this is a RealtimeAPI; leave it out"],
    ["node_selector: x", "node_selector: must be a map of labels of nodes"],
    [
      "tolerations: [{effect: Never}]",
      "tolerations.0.effect: must be NoSchedule, PreferNoSchedule or NoExecute",
    ],
    [
      "service_account: quern",
      "service_account: must not be the server's own: it has rights that user code must not have",
    ],
    ["secrets: [quern-authority]", "secrets.0: must not begin with quern: those are the server's own"],
    ["secrets: [A_B]", "secrets.0: must be the name of a Secret"],
  ])("may not say compute: %s", (key, detail) => {
    expect(errorsOf(api(`  compute: {cpu: 1, ${key}}\n`))).toEqual([
      expect.stringMatching(`a: compute\\.${detail}`),
    ]);
  });

  it.each([
    ["2.01s", 2010],
    ["4.1m", 246_000],
    ["8.2m", 492_000],
    ["16.1s", 16_100],
    ["1500us", 2],
    ["1ns", 1],
    ["1.4ms", 1],
    ["0s", 0],
    [`${"9".repeat(400)}h`, undefined],
  ])("has %s in whole milliseconds", (text, ms) => {
    expect(parseDurationMs(text)).toBe(ms);
  });

  it("bounds every number that gateways and timers count with", () => {
    const much = "9007199254740991";
    for (const [extra, detail] of [
      ["  autoscaling: {min_replicas: %}\n", "must be at most 10000"],
      ["  autoscaling: {max_replicas: %}\n", "must be at most 10000"],
      ["  autoscaling: {window: 600h}\n", "must be at most 552h"],
      ["  update_strategy: {max_surge: 99999%, max_unavailable: 1}\n", "a percentage such as 25%"],
      ["  update_strategy: {max_surge: %}\n", "must be at most 10000"],
    ] as const)
      expect([extra, errorsOf(api(extra.replace("%}", `${much}}`)))]).toEqual([
        extra,
        [expect.stringContaining(detail)],
      ]);
    for (const field of ["timeout: 600h", `threads_per_process: ${much}`])
      expect(errorsOf(`- name: a\n  predictor: {path: p.py, ${field}}\n`)).toEqual([
        expect.stringContaining("must be at most"),
      ]);
  });

  it("keeps every digit of predictor.config", () => {
    const [parsed] = parseConfig(
      "- name: a\n  predictor:\n    path: p.py\n    config: {big: 12345678901234567890, f: 1.5, n: null, l: [1]}\n",
      "q",
    );
    expect(parsed!.configText).toBe('{"big":12345678901234567890,"f":1.5,"n":null,"l":[1]}');
  });

  it("keeps every number of predictor.config as a JSON number with the same digits", () => {
    const written =
      "[1.0, 1.50, .5, -.5, 5., +7, 007, 0x1F, 0o17, 1e5, -1.5E-3, +1.0e+2, -0.0, 0.1000, 123456789012345678901234567890]";
    const [parsed] = parseConfig(
      `- name: a\n  predictor:\n    path: p.py\n    config: {n: ${written}, 1.50: &x 2.0, y: *x}\n`,
      "q",
    );
    expect(parsed!.configText).toBe(
      '{"n":[1.0,1.50,0.5,-0.5,5.0,7,7,31,15,1e5,-1.5E-3,1.0e+2,-0.0,0.1000,123456789012345678901234567890],"1.50":2.0,"y":2.0}',
    );
    expect(JSON.parse(parsed!.configText).n[1]).toBe(1.5);
  });

  it.each([[".inf"], ["-.Inf"], [".NaN"], ["1e999"]])(
    "refuses %s in predictor.config, with line and column",
    (number) => {
      const text = `- name: a\n  predictor:\n    path: p.py\n    config:\n      fine: "${number}"\n      list:\n        - 1\n        - deep: ${number}\n`;
      expect(errorsOf(text)).toEqual([
        expect.stringContaining(
          `quern.yaml:8:11 a: predictor.config.list.1.deep: ${number} cannot be passed to a predictor`,
        ),
      ]);
    },
  );

  it("accepts any text in predictor.config", () => {
    const [parsed] = parseConfig('- name: a\n  predictor: {path: p.py, config: {a: "b:undefined,"}}\n', "q");
    expect(parsed!.configText).toBe('{"a":"b:undefined,"}');
  });

  it("reports all errors at once, each with line and column", () => {
    const text =
      "- name: Bad_Name\n  kind: RealTimeAPI\n  predictor:\n    path: p.py\n    timout: 5s\n- name: b\n  predictor: {path: q.py, timeout: soon}\n- 7\n";
    expect(errorsOf(text)).toEqual([
      expect.stringMatching(
        /^quern.yaml:1:3 Bad_Name: name: must begin with a lower-case letter.*\(got "Bad_Name"\)$/,
      ),
      expect.stringMatching(
        /^quern.yaml:2:3 Bad_Name: kind: must be RealtimeAPI, BatchAPI or TrafficSplitter \(got "RealTimeAPI"\)$/,
      ),
      'quern.yaml:5:5 Bad_Name: predictor.timout: key "timout" is not supported; did you mean "timeout"?',
      expect.stringMatching(/^quern.yaml:7:27 b: predictor.timeout: must be a duration/),
      "quern.yaml:8:3 must be a map with name, kind and predictor",
    ]);
  });

  it.each([
    [
      "a duplicate key",
      "- name: a\n  name: b\n  predictor: {path: p.py}\n",
      'quern.yaml:2:3 the key "name" is given twice, here and in line 1; keep one of them',
    ],
    [
      "a key given twice further down",
      api("  compute:\n    cpu: 1\n    mem: 1Gi\n    cpu: 2\n"),
      'quern.yaml:6:5 the key "cpu" is given twice, here and in line 4; keep one of them',
    ],
    ["bad indentation", "- name: a\n   kind: x\n", "quern.yaml:1:9 Nested mappings"],
    ["an empty file", "", "quern.yaml:1:1 the file must be a list"],
    ["a map instead of a list", "name: a\n", "quern.yaml:1:1 the file must be a list"],
    [
      "two APIs of one name",
      "- name: a\n  predictor: {path: p.py}\n- name: a\n  predictor: {path: p.py}\n",
      'quern.yaml:3:3 name: "a" is used by two APIs',
    ],
    ["no predictor", "- name: a\n", "quern.yaml:1:3 a: predictor is required"],
    ["a name of 43 characters", `- name: a${"b".repeat(42)}\n  predictor: {path: p.py}\n`, "at most 42"],
    ["a reserved variable", api("").replace("p.py", "p.py, env: {QUERN_X: a}"), "reserved"],
    ["a number in env", api("").replace("p.py", "p.py, env: {X: 1}"), "must be a string"],
  ])("is refused with %s", (_, text, message) => {
    expect(errorsOf(text).join("\n")).toContain(message);
  });

  it("names the unknown key of a list element and the allowed keys", () => {
    const text = "- name: s\n  kind: TrafficSplitter\n  apis: [{name: a, wight: 100}]\n";
    expect(errorsOf(text)).toEqual([
      'quern.yaml:3:20 s: apis.0.wight: key "wight" is not supported; did you mean "weight"?',
      expect.stringContaining("s: apis.0.weight: is required"),
    ]);
  });

  it("checks the rest of an entry that has an error", () => {
    const text = api(
      "  compute: {cpu: lots, gpu: 1}\n  autoscaling: {min_replicas: 3, max_replicas: 2}\n  update_strategy: {max_surge: 0, max_unavailable: 0}\n  output: {store_path: nowhere}\n  speed: 3\n",
    );
    const { apis, errors } = readConfig(text, "q");
    expect(errors.map(({ detail }) => detail.replace(/:? [a-z]+ .*/, ""))).toEqual([
      ...[
        "a: compute.cpu",
        "a: speed",
        "a: autoscaling.max_replicas",
        'a: output.store_path: "nowhere"',
        "a: update_strategy: max_surge",
        "a: output",
      ],
    ]);
    expect(apis[0]!.config).toMatchObject({ name: "a", predictor: { path: "p.py" }, compute: { gpu: 1 } });
    // For an unknown kind, nothing is reported about fields of other kinds.
    const noKind = readConfig(
      api("  kind: X\n  autoscaling: {min_replicas: 1}\n  output: {store_path: s3://b}\n"),
      "q",
    );
    expect(noKind.errors).toHaveLength(2);
    expect(noKind.apis[0]).toMatchObject({ hasKind: false, config: { predictor: { path: "p.py" } } });
    expect(
      readConfig("- name: B_D\n  predictor: {path: p.py}\n- name: 5\n  predictor: {path: p.py}\n", "q").apis,
    ).toMatchObject([{ config: { name: "B_D" } }, { config: { name: "entry-2" } }]);
  });

  it.each([
    [
      "max_replicas",
      "  autoscaling: {min_replicas: 3, max_replicas: 2}\n",
      "must not be below min_replicas (3)",
    ],
    [
      "init_replicas",
      "  autoscaling: {max_replicas: 2, init_replicas: 3}\n",
      "from min_replicas (1) to max_replicas (2)",
    ],
    [
      "target",
      "  autoscaling: {max_replica_concurrency: 2, target_replica_concurrency: 3}\n",
      "max_replica_concurrency (2)",
    ],
    ["factors", "  autoscaling: {max_downscale_factor: 1}\n", "must be below 1"],
    ["window", "  autoscaling: {window: 10ms}\n", "at least 1s"],
    ["strategy", "  update_strategy: {max_surge: 0, max_unavailable: 0%}\n", "cannot both be 0"],
    [
      "processes",
      api("  kind: BatchAPI\n").replace("p.py", "p.py, processes_per_replica: 2"),
      "must be 1 for a BatchAPI",
    ],
    ["GPUs", api("  compute: {gpu: 1}\n").replace("p.py", "p.py, processes_per_replica: 2"), "a multiple of"],
  ])("is refused for a contradiction in %s", (_, extra, message) => {
    expect(errorsOf(extra.startsWith("-") ? extra : api(extra)).join("\n")).toContain(message);
  });

  it.each([
    "  networking: {endpoint: /a, api_gateway: public}\n",
    "  autoscaling: {min_replicas: 2, max_replicas: 2, max_replica_concurrency: 5}\n",
    "  autoscaling: {min_replicas: 0, max_replicas: 3, init_replicas: 0, window: 10s, upscale_stabilization_period: 0s}\n",
    "  update_strategy: {max_surge: 1, max_unavailable: 50%}\n",
    "  kind: BatchAPI\n  output: {store_path: s3://bucket/results}\n",
    "  kind: BatchAPI\n  output: {}\n",
    "  compute: {cpu: 0.5}\n",
    "  compute: {cpu: 500m, gpu: 0}\n",
  ])("accepts %j", (extra) => {
    expect(errorsOf(api(extra))).toEqual([]);
  });
});

describe("a configuration of Cortex", () => {
  /** An entry with one key at its place. */
  const entryWith = (path: readonly string[], value: unknown) => {
    const inner = [...path].reverse().reduce<unknown>((at, name) => ({ [name]: at }), value);
    const { predictor, ...rest } = inner as { predictor?: object };
    return JSON.stringify([{ name: "a", predictor: { path: "p.py", ...predictor }, ...rest }]);
  };

  it.each(FORMER_KEYS)("gets a cure and a link to the guide for $path ($value)", ({ path, value, cure }) => {
    const { errors } = readConfig(entryWith(path, value ?? 7), "cortex.yaml");
    expect(errors).toEqual([
      {
        pointer: expect.stringMatching(/^cortex.yaml:1:/),
        detail: `a: ${path.join(".")}: ${cure}`,
        guide: FORMER_GUIDE,
      },
    ]);
    expect(readConfig(entryWith(path, null), "cortex.yaml").errors).toEqual([]);
  });

  it("may request zero Inferentia chips", () => {
    expect(errorsOf(api("  compute: {inf: 0, cpu: 1}\n"))).toEqual([]);
    expect(errorsOf(api("  compute: {inf: 1}\n"))).toEqual([
      expect.stringContaining("quern.yaml:3:13 a: compute.inf: must be 0"),
    ]);
  });

  it("gets all errors of a handler at once, each with its position", () => {
    const text =
      "- name: a\n  kind: AsyncAPI\n  handler:\n    type: tensorflow\n    path: p.py\n    models: {path: s3://b/m}\n    timout: 5s\n";
    const { errors, apis } = readConfig(text, "quern.yaml");
    expect(
      errors.map(({ pointer, detail }) => `${pointer} ${detail.split(" ").slice(0, 3).join(" ")}`),
    ).toEqual([
      "quern.yaml:3:3 a: handler: is",
      "quern.yaml:2:3 a: kind: AsyncAPI",
      "quern.yaml:4:5 a: handler.type: must",
      "quern.yaml:6:5 a: handler.models: is",
      "quern.yaml:7:5 a: handler.timout: key",
    ]);
    expect(apis[0]!.positionOf(["predictor", "path"])).toBe("quern.yaml:5:5");
  });

  const BLOCKS = [
    "predictor",
    "compute",
    "networking",
    "autoscaling",
    "monitoring",
    "update_strategy",
    "apis",
  ];
  it("may have null for every optional key and map", () => {
    const nulls = BLOCKS.filter((name) => name !== "predictor").map((name) => `  ${name}: null\n`);
    const [whole] = parseConfig(api(`  kind: ~\n  output:\n${nulls.join("")}`), "q");
    expect(errorsOf(api(`  kind: ~\n  output:\n${nulls.join("")}`))).toEqual([]);
    expect(whole!.config).toEqual(parseConfig(api(""), "q")[0]!.config);
    const keys = {
      predictor: [
        "type",
        "config",
        "env",
        "python_path",
        "server_side_batching",
        "timeout",
        "threads_per_process",
      ],
      compute: ["cpu", "mem", "gpu"],
      networking: ["endpoint", "api_gateway", "auth"],
      autoscaling: ["min_replicas", "max_replicas", "window", "max_upscale_factor"],
      monitoring: ["model_type", "key"],
      update_strategy: ["max_surge", "max_unavailable"],
    };
    const text = Object.entries(keys)
      .map(([block, names]) => `  ${block}:\n${names.map((name) => `    ${name}: null\n`).join("")}`)
      .join("")
      .replace("    type", "    path: p.py\n    type");
    expect(errorsOf(`- name: a\n${text}`)).toEqual([]);
    expect(
      errorsOf(
        "- name: s\n  kind: TrafficSplitter\n  predictor: null\n  apis: [{name: a, weight: 100, shadow: null}]\n",
      ),
    ).toEqual([]);
  });

  it("may not have null for a required key, an unknown key or a key in predictor.env", () => {
    expect(errorsOf("- name: null\n  predictor: {path: null, timout: null, env: {A: null}}\n")).toEqual([
      expect.stringContaining("1:3 name: is required"),
      expect.stringContaining(
        '2:27 predictor.timout: key "timout" is not supported; did you mean "timeout"?',
      ),
      expect.stringContaining("2:15 predictor.path: is required"),
      expect.stringContaining("2:47 predictor.env.A: must be a string"),
    ]);
  });
});

describe("durations", () => {
  it.each([
    ["500ms", 500],
    ["1m30s", 90_000],
    ["2h", 7_200_000],
    ["1.5s", 1500],
    ["5", undefined],
    ["", undefined],
    ["-1s", undefined],
  ])("%j is %j ms", (text, ms) => {
    expect(parseDurationMs(text)).toBe(ms);
  });
});
