/**
 * Bodies of submissions: accepted or refused with the documented error. JSON.parse and Python read the same values from
 * accepted ones.
 */
import { parseSubmission } from "../../../src/batch/submit/parse-submission.ts";
import { ServiceError, toProblem } from "../../../src/contracts/errors.ts";
import { mustEqual, mustHold, type Target } from "../target.ts";

const CLAIMED_BYTES_MAX = 64 * 1024;
const ANSWER_BYTES_MAX = 64 * 1024;

function parsed(body: Buffer): ReturnType<typeof parseSubmission> | undefined {
  try {
    return parseSubmission(body);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.status >= 500) throw error;
    const bytes = JSON.stringify(toProblem(error, "r")).length;
    mustHold(bytes <= ANSWER_BYTES_MAX + 30 * body.length, `${body.length} bytes are refused with ${bytes}`);
    return undefined;
  }
}

export const submission: Target = {
  dictionary: [
    ...[
      '"workers":1',
      '"item_list":{"items":[1],"batch_size":1}',
      '"delimited_files":',
      '"file_path_lister":',
      '"store_paths":["s3://b/a"]',
    ],
    ...[
      '"includes":["**"]',
      '"excludes":["{a,b}"]',
      '"batch_size":1',
      '"config":{}',
      '"timeout":1',
      '"queue_dead_letter_queue":',
    ],
    ...[
      '{"arn":"queue","max_receive_count":2}',
      '"output":',
      '"on_failure":',
      '"__proto__":',
      '"constructor":',
      '"toString"',
      "null",
    ],
    ...[
      "\\u0000",
      "\\ud800",
      "\\",
      '"',
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      "\ufeff",
      "\u00e9",
      "true",
      "1e5",
      "-0",
      '"":',
    ],
  ],
  maxBytes: 256 * 1024,
  covers: /\/src\/(batch|base|contracts|object-store)\//,
  run(body) {
    const submission = parsed(body);
    if (submission === undefined) return undefined;
    const given = JSON.parse(body.toString()) as { config?: unknown; item_list: { items: unknown[] } };
    const { configText, input } = submission;
    mustEqual(JSON.parse(configText), given.config ?? {}, "config");
    if (input.kind !== "items") return undefined;
    const lines = input.lines.toString();
    const items = lines.split("\n").slice(0, -1);
    mustEqual(
      items.map((item) => JSON.parse(item) as unknown),
      given.item_list.items,
      "items",
    );
    mustEqual(items.length, input.count, "the number of items");
    return body.length > CLAIMED_BYTES_MAX ? undefined : { claim: { config: configText, items } };
  },
};
