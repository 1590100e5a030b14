/** Configurations in YAML: read, or refused with the place of each fault; every number as it was written. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readConfig } from "../../../src/apis/config/parse-config.ts";
import { stringifyExact } from "../../../src/base/json/exact.ts";
import { readYamlFile } from "../../../src/config/yaml-file.ts";
import { checkApp } from "../../../src/legacy/check/check-app.ts";
import { isApplication, loadApp } from "../../../src/legacy/check/load-app.ts";
import { mustHold, type Target } from "../target.ts";

const FILE = "quern.yaml";
/** The directory of an application without other files. */
const dir = mkdtempSync(join(tmpdir(), "quern-fuzz-"));

function mustBePlaced(errors: readonly { pointer: string; detail: string }[]): void {
  for (const { pointer, detail } of errors) {
    mustHold(/^quern\.yaml(:\d+:\d+)?$/.test(pointer), `an error is at ${pointer}`);
    mustHold(detail.length > 0, "an error says nothing");
  }
}

/** Each path of a value, some levels deep. */
function* pathsOf(value: unknown, path: (string | number)[] = []): Generator<(string | number)[]> {
  yield path;
  if (value === null || typeof value !== "object" || path.length > 3) return;
  for (const [name, member] of Object.entries(value).slice(0, 5))
    yield* pathsOf(member, [...path, Array.isArray(value) ? Number(name) : name]);
}

export const yaml: Target = {
  dictionary: [
    ...[
      "- name: a\n",
      "  kind: BatchAPI\n",
      "  kind: RealtimeAPI\n",
      "  kind: TrafficSplitter\n",
      "  predictor: {path: p.py}\n",
      "    config:\n",
    ],
    ...[
      "  compute: {mem: 1Gi, cpu: 1, gpu: 0}\n",
      "  autoscaling:\n",
      "    min_replicas: 0\n",
      "  networking:\n",
      "    endpoint: /a\n",
      "apis:\n",
    ],
    ...[
      "&a ",
      "*a",
      "<<: *a\n",
      "!!binary ",
      "!!js ",
      "!<tag:x> ",
      "? ",
      ": ",
      "- ",
      "|\n",
      ">-\n",
      "---\n",
      "...\n",
      "%YAML 1.1\n",
      "# c\n",
      "\t",
    ],
    ...[
      ".inf",
      "-.nan",
      "0x1F",
      "0o17",
      "+.5",
      "1.",
      "1e3",
      "~",
      "true",
      "2001-01-01",
      "__proto__: 1\n",
      "constructor: 1\n",
      "''",
      '""',
      "\u2028",
      "\x85",
    ],
    ...[
      "{",
      "}",
      "[",
      "]",
      ",",
      "\n",
      "\r",
      "\u0000",
      "'",
      '"',
      "\\x",
      "\\u",
      "- kind: app\n",
      "- kind: model\n",
      "- kind: raw_column\n",
    ],
  ],
  maxBytes: 16 * 1024,
  covers: /\/(src\/(config|apis|contracts|base|legacy)|node_modules\/yaml)\//,
  setUp: async () => async () => rmSync(dir, { recursive: true }),
  run(input) {
    const text = input.toString();
    const read = readYamlFile(text, FILE);
    if (Array.isArray(read)) mustBePlaced(read);
    else {
      for (const path of pathsOf(read.value))
        mustHold(/^quern\.yaml:\d+:\d+$/.test(read.positionOf(path)), "a place is none");
      read.positionOf(["nowhere", 7]);
      stringifyExact(read.exact);
    }
    const { apis, errors } = readConfig(text, FILE);
    mustBePlaced(errors);
    for (const { config, configText } of apis) {
      if (errors.length === 0) JSON.parse(configText);
      JSON.stringify(config);
    }
    if (!isApplication(text)) return undefined;
    const app = loadApp(text, FILE, dir);
    const checked = "errors" in app ? app : checkApp(app.resources, () => true);
    if ("errors" in checked) mustBePlaced(checked.errors);
    return undefined;
  },
};
