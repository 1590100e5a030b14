/** All that is fuzzed, by name. Seeds are in `seeds/NAME`. */
import type { PythonTarget, Target } from "./target.ts";
import { answersOfReplicas } from "./targets/answers.ts";
import { archive } from "./targets/archive.ts";
import { frames } from "./targets/frames.ts";
import { glob } from "./targets/glob.ts";
import { cursors, requests } from "./targets/http.ts";
import { jsonLines } from "./targets/json-lines.ts";
import { grows, hangs, throws } from "./targets/planted.ts";
import { settlements } from "./targets/settlements.ts";
import { submission } from "./targets/submission.ts";
import { yaml } from "./targets/yaml.ts";
import { FRAME_WORDS, fixtureFrames } from "./wire.ts";

/** Bodies of predictions by their content type: the first line is the content type. */
const payloads: PythonTarget = {
  dictionary: [
    ...[
      "multipart/form-data; boundary=b\n",
      "text/plain; charset=",
      "application/x-www-form-urlencoded\n",
      "utf-8",
      "punycode",
      "idna",
      "utf-16",
      "zip",
    ],
    ...[
      "--b\r\n",
      "--b--",
      "\r\n\r\n",
      "\r\n",
      'Content-Disposition: form-data; name="a"',
      '; filename="f"',
      "; filename*=utf-8''f",
      "name*0=a",
      "name*1*=b",
    ],
    ...[
      "Content-Type: text/plain; charset=latin-1",
      "a=1&",
      "a&",
      "%E9",
      "%",
      "+",
      ";",
      '"',
      "\\",
      "=?utf-8?q?a?=",
      "\xe9",
      "\0",
      "name=",
      "b",
      "=",
      ",",
    ],
  ],
  maxBytes: 64 * 1024,
};

/** Frames of callers to a worker: the first byte says who calls. */
const callers: PythonTarget = {
  dictionary: [
    ...FRAME_WORDS,
    '{"content_type":"text/plain"}',
    '{"headers":{}}',
    '{"query_params":[["a","b"]]}',
    '"repeated_headers":{"a":["b"]}',
    '"epoch":1',
    '"token":"f00d"',
    '"role":"gateway"',
  ],
  maxBytes: 64 * 1024,
  seeds: () =>
    [0, 1, 2].flatMap((who) =>
      fixtureFrames((type) => type < 64).map((bytes) => Buffer.concat([Buffer.from([who]), bytes])),
    ),
};

export const TARGETS: Readonly<Record<string, Target | PythonTarget>> = {
  frames,
  answers: answersOfReplicas,
  settlements,
  callers,
  payloads,
  submission,
  "json-lines": jsonLines,
  yaml,
  glob,
  archive,
  requests,
  cursors,
  "planted-throw": throws,
  "planted-hang": hangs,
  "planted-growth": grows,
};

/** For the fuzzer's own test only. */
export const PLANTED: readonly string[] = ["planted-throw", "planted-hang", "planted-growth"];
