/** A submission's body: what is read from it, and every error. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ParsedSubmission, parseSubmission } from "../../../src/batch/submit/parse-submission.ts";
import { type FieldError, ServiceError } from "../../../src/contracts/errors.ts";
import { CONFIG_BYTES_MAX, CONFIG_DEPTH_MAX } from "../../../src/contracts/limits/configuration.ts";
import { READ_HERE_BYTES_MAX } from "../../../src/contracts/limits/event-loop.ts";
import {
  BATCH_BYTES_LIMIT,
  GLOB_CHARACTERS_MAX,
  GLOB_LENGTH_MAX,
  GLOBS_MAX,
  ITEM_DEPTH_MAX,
  NUMBER_CHARACTERS_MAX,
  STORE_PATHS_CHARACTERS_MAX,
  STORE_PATHS_MAX,
} from "../../../src/contracts/limits/submissions.ts";

/** A body that is longer than this is read in another way: its items are left alone. */
const PADDING = " ".repeat(READ_HERE_BYTES_MAX);
const ITEMS = { item_list: { items: [1], batch_size: 1 } };

const textOf = (body: unknown) => (typeof body === "string" ? body : JSON.stringify(body));
const parse = (body: unknown): ParsedSubmission =>
  parseSubmission(Buffer.isBuffer(body) ? body : Buffer.from(textOf(body)));

function refusal(body: unknown): ServiceError {
  try {
    parse(body);
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error("it was accepted");
}

const errorsOf = (body: unknown): FieldError[] => [...(refusal(body).details.fields ?? [])];
const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
const list = (items: string, batchSize: number) =>
  `{"workers":1,"item_list":{"batch_size":${batchSize},"items":[${items}]}}`;
/** JSON text of so many bytes. */
const textItem = (bytes: number) => JSON.stringify("x".repeat(bytes - 2));

/** The input with its lines as text. */
function inputOf(body: unknown) {
  const { input } = parse(body);
  return input.kind === "items" ? { ...input, lines: input.lines.toString() } : input;
}

describe("a number with too many characters", () => {
  const body = (digits: number, padding: string) =>
    `{"workers":1,"config":{"n":${"1".repeat(digits)}},"item_list":{"items":[1],"batch_size":1}}${padding}`;
  it.each(["", PADDING])("is refused anywhere in the body, whatever its length", (padding) => {
    expect(refusal(body(NUMBER_CHARACTERS_MAX + 1, padding))).toMatchObject({
      code: "malformed_json",
      message: expect.stringContaining("a number of over 4300 characters at byte 27"),
    });
    expect(parse(body(NUMBER_CHARACTERS_MAX, padding)).workers).toBe(1);
  });
});

describe("a submission is read", () => {
  it.each<[string, unknown, Partial<ParsedSubmission>]>([
    ["with its input only", { workers: 1, ...ITEMS }, { workers: 1, timeout: undefined, configText: "{}" }],
    [
      "with null fields as if they were absent",
      { workers: 3, timeout: null, config: null, output: null, ...ITEMS },
      { workers: 3, configText: "{}" },
    ],
    ["with a timeout", { workers: 1, timeout: 90, ...ITEMS }, { timeout: 90 }],
    ["without a dead letter queue", { workers: 1, ...ITEMS }, { deadLetters: undefined }],
    [
      "with a queue of Quern",
      { workers: 1, queue_dead_letter_queue: { arn: "arn:quern:queue:q", max_receive_count: 2 }, ...ITEMS },
      { deadLetters: { arn: "arn:quern:queue:q", queue: "q", max_receive_count: 2 } },
    ],
    [
      "with an SQS queue, by its older name",
      {
        workers: 1,
        sqs_dead_letter_queue: { arn: "arn:aws:sqs:us-west-2:123456789012:q.fifo", max_receive_count: 1 },
        ...ITEMS,
      },
      {
        deadLetters: {
          arn: "arn:aws:sqs:us-west-2:123456789012:q.fifo",
          queue: "arn:aws:sqs:us-west-2:123456789012:q.fifo",
          max_receive_count: 1,
        },
        olderNames: [{ older: "sqs_dead_letter_queue", newer: "queue_dead_letter_queue" }],
      },
    ],
    ["with newer names", { workers: 1, ...ITEMS }, { olderNames: [] }],
  ])("%s", (_, body, expected) => {
    expect(parse(body)).toMatchObject(expected);
    expect(parse(PADDING + textOf(body))).toEqual(parse(body));
  });

  it.each<[string, unknown, ReturnType<typeof inputOf>]>([
    [
      "items, as they were sent, without white space",
      list('{ "a" : 1.0 } , 12345678901234567890, -0, "\\u00e4 ä"', 3),
      {
        kind: "items",
        batch_size: 3,
        count: 4,
        lines: '{"a":1.0}\n12345678901234567890\n-0\n"\\u00e4 ä"\n',
      },
    ],
    [
      "nulls among the items",
      { workers: 1, item_list: { items: [null, { a: null }], batch_size: 1 } },
      { kind: "items", batch_size: 1, count: 2, lines: 'null\n{"a":null}\n' },
    ],
    [
      "files of lines",
      { workers: 1, delimited_files: { store_paths: ["file:///a/../b", "s3://bucket"], batch_size: 2 } },
      { kind: "lines", batch_size: 2, store_paths: ["file:///b", "s3://bucket/"] },
    ],
    [
      "paths of files, with globs",
      {
        workers: 1,
        file_path_lister: {
          store_paths: ["s3://bucket/a//b"],
          includes: ["**.jpg"],
          excludes: [],
          batch_size: 2,
        },
      },
      { kind: "paths", batch_size: 2, store_paths: ["s3://bucket/a//b"], includes: ["**.jpg"], excludes: [] },
    ],
    [
      "one input, and another that is null",
      {
        workers: 1,
        item_list: null,
        delimited_files: { store_paths: ["file:///a"], includes: null, batch_size: 1 },
      },
      { kind: "lines", batch_size: 1, store_paths: ["file:///a"] },
    ],
  ])("with %s", (_, body, expected) => {
    expect(inputOf(body)).toEqual(expected);
    expect(inputOf(PADDING + textOf(body))).toEqual(expected);
  });

  it.each(["delimited_files", "file_path_lister"])("with the older name of the paths in %s", (within) => {
    const parsed = parse({ workers: 1, [within]: { s3_paths: ["s3://bucket/a"], batch_size: 1 } });
    expect(parsed.input).toMatchObject({ store_paths: ["s3://bucket/a"] });
    expect(parsed.olderNames).toEqual([{ within, older: "s3_paths", newer: "store_paths" }]);
  });

  it("with its config as it was sent, nulls and digits included", () => {
    const config = '{ "a": null, "b": [1.50, 12345678901234567890], "item_list": {} }';
    const { configText } = parse(`{"workers":1,"config":${config},"item_list":{"items":[1],"batch_size":1}}`);
    expect(configText).toBe('{"a":null,"b":[1.50,12345678901234567890],"item_list":{}}');
  });

  it("with any items and any config, in any layout, short or long", () => {
    const config = fc.dictionary(fc.string(), fc.jsonValue());
    const items = fc.array(fc.jsonValue(), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(
        items,
        config,
        fc.integer({ min: 1, max: 5 }),
        fc.nat(3),
        fc.boolean(),
        (values, given, size, indent, isLong) => {
          const body = { workers: 1, config: given, item_list: { items: values, batch_size: size } };
          const parsed = parse(JSON.stringify(body, null, indent) + (isLong ? PADDING : ""));
          expect(parsed.configText).toBe(JSON.stringify(given));
          const { lines, ...rest } = parsed.input as Extract<ParsedSubmission["input"], { kind: "items" }>;
          expect(lines.toString()).toBe(values.map((value) => `${JSON.stringify(value)}\n`).join(""));
          expect(rest).toEqual({ kind: "items", batch_size: size, count: values.length });
        },
      ),
    );
  });
});

const containing = (text: string) => expect.stringContaining(text) as string;
const ONE_OF = "specify exactly one of item_list, file_path_lister, delimited_files";
const KEYS =
  "legal keys: workers, timeout, config, item_list, delimited_files, file_path_lister, queue_dead_letter_queue, output, on_failure, priority";
const file = (given: object) => ({ store_paths: ["file:///a"], batch_size: 1, ...given });

/** Each with all of its errors. */
const REFUSED: [string, unknown, [pointer: string, detail: string][]][] = [
  ["being an array", [], [["", containing("object")]]],
  ["being null", null, [["", containing("object")]]],
  ["being a number", 1, [["", containing("object")]]],
  [
    "having nothing in it",
    {},
    [
      ["/workers", "is required (must be an integer)"],
      ["", `${ONE_OF}; none was given`],
    ],
  ],
  [
    "two inputs",
    { workers: 1, ...ITEMS, delimited_files: file({}) },
    [["", `${ONE_OF}; given: item_list, delimited_files`]],
  ],
  [
    "an output whose files' names would be too long",
    { workers: 1, ...ITEMS, output: { store_path: `file:///${"a/".repeat(2040)}` } },
    [
      [
        "/output/store_path",
        containing("has 4081 bytes after file://; an output's path has at most 4016 there"),
      ],
    ],
  ],
  [
    "an output whose objects' keys would be too long",
    { workers: 1, ...ITEMS, output: { store_path: `s3://bucket/${"é/".repeat(315)}` } },
    [
      [
        "/output/store_path",
        containing("has 945 bytes after s3://bucket/; an output's path has at most 944 there"),
      ],
    ],
  ],
  [
    "all that can be wrong at once",
    {
      ...{ workers: 0, timeout: 1.5, config: [], nonsense: 1 },
      ...{ output: { path: "s3://bucket/a" }, on_failure: 1 },
    },
    [
      ["/workers", "must be an integer of at least 1 (got 0)"],
      ["/timeout", "must be an integer (got 1.5)"],
      ["/config", "must be an object (got [])"],
      ["/nonsense", `key "nonsense" is not supported; ${KEYS}`],
      ["", `${ONE_OF}; none was given`],
      ["/output/path", 'key "path" is not supported; legal keys: store_path, compression'],
      ["/on_failure", 'must be "fail" or "isolate" (got 1)'],
    ],
  ],
  [
    "a way to fail that does not exist",
    { workers: 1, ...ITEMS, on_failure: "stop" },
    [["/on_failure", 'must be "fail" or "isolate" (got "stop")']],
  ],
  [
    "batches too large to be split",
    { workers: 1, delimited_files: file({ batch_size: 5001 }), on_failure: "isolate" },
    [
      [
        "/delimited_files/batch_size",
        'must be at most 5000 with "on_failure": "isolate" (got 5001), which splits batches into single items',
      ],
    ],
  ],
  [
    "a wrong key among the items'",
    { workers: 1, item_list: { items: [1], batch_size: 1, paths: 1 } },
    [["/item_list/paths", 'key "paths" is not supported; legal keys: items, batch_size']],
  ],
  [
    "a wrong key among the files'",
    { workers: 1, delimited_files: file({ item: [] }) },
    [
      [
        "/delimited_files/item",
        'key "item" is not supported; legal keys: store_paths, includes, excludes, batch_size',
      ],
    ],
  ],
  [
    "a wrong key of the queue",
    { workers: 1, ...ITEMS, queue_dead_letter_queue: { arn: "q", attempts: 1 } },
    [
      ["/queue_dead_letter_queue/attempts", containing("legal keys: arn, max_receive_count")],
      ["/queue_dead_letter_queue/max_receive_count", "is required (must be an integer)"],
    ],
  ],
  [
    "a queue that is none",
    { workers: 1, ...ITEMS, queue_dead_letter_queue: { arn: "two words", max_receive_count: 1 } },
    [["/queue_dead_letter_queue/arn", containing('"two words" must be arn:aws:sqs')]],
  ],
  ...["", "-", "a_b", "x".repeat(33)].map((region): [string, unknown, [string, string][]] => [
    `a queue of SQS in the region "${region}"`,
    {
      workers: 1,
      ...ITEMS,
      queue_dead_letter_queue: { arn: `arn:aws:sqs:${region}:1:q`, max_receive_count: 1 },
    },
    [["/queue_dead_letter_queue/arn", containing("must be arn:aws:sqs:<region>")]],
  ]),
  [
    "a queue that is none, by its older name",
    { workers: 1, ...ITEMS, sqs_dead_letter_queue: { arn: "two words", max_receive_count: 1 } },
    [["/sqs_dead_letter_queue/arn", containing('"two words" must be arn:aws:sqs')]],
  ],
  [
    "a count that is none, by its queue's older name",
    { workers: 1, ...ITEMS, sqs_dead_letter_queue: { arn: "q", max_receive_count: 0 } },
    [["/sqs_dead_letter_queue/max_receive_count", "must be an integer of at least 1 (got 0)"]],
  ],
  [
    "null in place of what is required",
    { workers: null, item_list: { items: null, batch_size: null } },
    [
      ["/workers", "is required (must be an integer)"],
      ["/item_list/items", "is required (must be an array)"],
      ["/item_list/batch_size", "is required (must be an integer)"],
    ],
  ],
  [
    "an object with a null in place of a number, shown as it was sent",
    { workers: 1, item_list: { items: [1], batch_size: { a: null } } },
    [["/item_list/batch_size", 'must be an integer (got {"a":null})']],
  ],
  [
    "paths and patterns that are none",
    {
      workers: 1,
      file_path_lister: {
        store_paths: ["file:///a", "/a", "ftp://x/y"],
        ...{ includes: ["*", "[a"], excludes: ["{a"], batch_size: 1 },
      },
    },
    [
      ["/file_path_lister/store_paths/1", containing('"/a" is not a path of the shape')],
      ["/file_path_lister/store_paths/2", containing("the scheme ftp:// is unknown")],
      ["/file_path_lister/includes/1", containing('"[a" is not a glob pattern: "[" is never closed')],
      ["/file_path_lister/excludes/0", containing('"{a" is not a glob pattern: "{" is never closed')],
    ],
  ],
  [
    "a path that is none, by the paths' older name",
    { workers: 1, delimited_files: { s3_paths: ["file:///a", "/a"], batch_size: 1 } },
    [["/delimited_files/s3_paths/1", containing('"/a" is not a path of the shape')]],
  ],
  [
    "older names beside newer ones",
    {
      workers: 1,
      file_path_lister: { store_paths: ["/b"], s3_paths: 1, batch_size: 1 },
      queue_dead_letter_queue: { arn: "q", max_receive_count: 1 },
      sqs_dead_letter_queue: 1,
    },
    [
      [
        "/file_path_lister/s3_paths",
        "s3_paths is an older name of store_paths, and both are given; keep store_paths",
      ],
      [
        "/sqs_dead_letter_queue",
        "sqs_dead_letter_queue is an older name of queue_dead_letter_queue, and both are given; keep queue_dead_letter_queue",
      ],
    ],
  ],
  [
    "older names where they mean nothing",
    {
      workers: 1,
      item_list: { items: [1], batch_size: 1, s3_paths: [] },
      s3_paths: [],
      delimited_files: ["s3_paths"],
    },
    [
      ["/s3_paths", containing("is not supported")],
      ["/item_list/s3_paths", containing("is not supported")],
      ["/delimited_files", containing("object")],
      ["", `${ONE_OF}; given: item_list, delimited_files`],
    ],
  ],
  [
    "a name that begins like one with an older name",
    {
      workers: 1,
      sqs_dead_letter_queue: { arn: "q", max_receive_count: 1 },
      queue_dead_letter_queue_url: 1,
      ...ITEMS,
    },
    [["/queue_dead_letter_queue_url", containing("is not supported")]],
  ],
];

describe("a submission is refused", () => {
  it.each(REFUSED)("for %s, with every error and its field", (_, body, expected) => {
    const errors = expected.map(([pointer, detail]) => ({ pointer, detail }));
    const byPointer = (a: FieldError, b: FieldError) => (a.pointer < b.pointer ? -1 : 1);
    for (const text of [textOf(body), PADDING + textOf(body)]) {
      const error = refusal(text);
      expect(error.code).toBe("invalid_request");
      expect([...error.details.fields!].sort(byPointer)).toEqual([...errors].sort(byPointer));
    }
  });

  it.each([
    ["nothing", ""],
    ["an object that never ends", '{"workers":1'],
    ["more than one value", `${JSON.stringify({ workers: 1, ...ITEMS })}x`],
  ])("for %s, which is not JSON", (_, text) => {
    for (const body of [text, PADDING + text]) {
      const error = refusal(body);
      expect(error.code).toBe("malformed_json");
      expect(error.message).toContain("the body is not valid JSON");
    }
  });

  it("with the first error and the number of other errors in the message", () => {
    expect(refusal({ workers: 0, ...ITEMS }).message).toBe(
      "the submission is not valid: /workers: must be an integer of at least 1 (got 0)",
    );
    expect(refusal({ workers: 1 }).message).toBe(
      `the submission is not valid: the body: ${ONE_OF}; none was given`,
    );
    expect(refusal({ workers: 0, timeout: 0, ...ITEMS }).message).toContain("(got 0) (and 1 more)");
  });

  it("for text that is not UTF-8, in an item or elsewhere", () => {
    const latin1 = (text: string) => Buffer.from(text, "latin1");
    const detail = "is not valid UTF-8: send the text as UTF-8, or bytes in base64";
    expect(errorsOf(latin1(list('1,"\u00fc",2', 1)))).toEqual([{ pointer: "/item_list/items/1", detail }]);
    const config = '{"workers":1,"config":{"a":"\u00fc"},"item_list":{"items":["ä"],"batch_size":1}}';
    const inConfig = latin1(config.replace("ä", "a"));
    expect(errorsOf(inConfig)).toEqual([
      { pointer: "", detail: "the body is not valid UTF-8, as JSON must be" },
    ]);
    expect(parse(Buffer.from(config)).configText).toBe('{"a":"ü"}');
  });
});

const refusedWith = (body: unknown, ...errors: [pointer: string, detail: string][]) =>
  expect(errorsOf(body)).toEqual(
    errors.map(([pointer, detail]) => ({ pointer, detail: containing(detail) })),
  );

describe("the limits of a submission", () => {
  it("apply to its config: bytes of compact JSON, and depth", () => {
    const withConfig = (config: string) =>
      `{"workers":1,"config":${config},"item_list":{"items":[1],"batch_size":1}}`;
    const sized = (bytes: number) => `{"a" :  ${textItem(bytes - '{"a":}'.length)}}`;
    expect(parse(withConfig(sized(CONFIG_BYTES_MAX))).configText).toHaveLength(CONFIG_BYTES_MAX);
    refusedWith(withConfig(sized(CONFIG_BYTES_MAX + 1)), [
      "/config",
      `has ${CONFIG_BYTES_MAX + 1} bytes as compact JSON, and at most ${CONFIG_BYTES_MAX} are allowed`,
    ]);
    const deep = (depth: number) => `{"a":${nested(depth - 1)}}`;
    expect(parse(withConfig(deep(CONFIG_DEPTH_MAX))).configText).toBe(deep(CONFIG_DEPTH_MAX));
    refusedWith(withConfig(deep(CONFIG_DEPTH_MAX + 1)), ["/config", `deeper than ${CONFIG_DEPTH_MAX}`]);
  });

  it.each(["includes", "excludes"])("apply to its globs (%s), to each and in total", (name) => {
    const globs = (patterns: unknown[]) => ({ workers: 1, file_path_lister: file({ [name]: patterns }) });
    const pointer = `/file_path_lister/${name}`;
    const longest = "a".repeat(GLOB_LENGTH_MAX);
    const most = Array<string>(GLOB_CHARACTERS_MAX / GLOB_LENGTH_MAX).fill(longest);
    expect(inputOf(globs(Array(GLOBS_MAX).fill("a")))).toMatchObject({ [name]: { length: GLOBS_MAX } });
    expect(inputOf(globs(most))).toMatchObject({ [name]: most });
    refusedWith(globs(Array(GLOBS_MAX + 1).fill("a")), [
      pointer,
      `must contain at most ${GLOBS_MAX} elements (got ${GLOBS_MAX + 1}); combine patterns with {a,b} and **`,
    ]);
    refusedWith(globs([...most, "a"]), [
      pointer,
      `must have at most ${GLOB_CHARACTERS_MAX} characters together (got ${GLOB_CHARACTERS_MAX + 1}); combine patterns with {a,b} and **`,
    ]);
    const characters = Math.floor(GLOB_CHARACTERS_MAX / GLOBS_MAX) + 1;
    refusedWith(globs(Array(GLOBS_MAX).fill("a".repeat(characters))), [
      pointer,
      `must have at most ${GLOB_CHARACTERS_MAX} characters together (got ${GLOBS_MAX * characters})`,
    ]);
    // A pattern that is too long is reported itself; one that is not a text counts no characters.
    refusedWith(globs(["b", `${longest}a`.repeat(100)]), [`${pointer}/1`, `at most ${GLOB_LENGTH_MAX}`]);
    refusedWith(globs([...most, 12]), [`${pointer}/${most.length}`, "string"]);
  });

  it("apply to its paths, also under their older name", () => {
    const paths = (name: string, entries: string[]) => ({
      workers: 1,
      delimited_files: { [name]: entries, batch_size: 1 },
    });
    const tooMany = Array<string>(STORE_PATHS_MAX + 1).fill("file:///a");
    const detail = `must contain at most ${STORE_PATHS_MAX} elements (got ${STORE_PATHS_MAX + 1}); a prefix selects`;
    refusedWith(paths("store_paths", tooMany), ["/delimited_files/store_paths", detail]);
    refusedWith(paths("s3_paths", tooMany), ["/delimited_files/s3_paths", detail]);
    const long = Array<string>(STORE_PATHS_CHARACTERS_MAX / 1024).fill(
      `s3://bucket/${"a".repeat(1024 - 12)}`,
    );
    expect(inputOf(paths("store_paths", long))).toMatchObject({ store_paths: { length: long.length } });
    refusedWith(paths("store_paths", [...long, "s3://bucket/a"]), [
      "/delimited_files/store_paths",
      `must have at most ${STORE_PATHS_CHARACTERS_MAX} characters together (got ${STORE_PATHS_CHARACTERS_MAX + 13})`,
    ]);
  });

  it("apply to the depth of an item, whatever its layout", () => {
    const deep = `[${" ".repeat(10)}${nested(ITEM_DEPTH_MAX - 1)}]`;
    expect(inputOf(list(deep, 1))).toMatchObject({ lines: `${nested(ITEM_DEPTH_MAX)}\n` });
    const detail = `is nested deeper than ${ITEM_DEPTH_MAX}: make it flatter`;
    refusedWith(
      list(`1,${nested(ITEM_DEPTH_MAX + 1)},[${deep}]`, 3),
      ["/item_list/items/1", detail],
      ["/item_list/items/2", detail],
    );
  });

  it("end the search for errors at a thousand", () => {
    const items = Array<string>(1_200)
      .fill(nested(ITEM_DEPTH_MAX + 1))
      .join(",");
    const { fields, fieldsTotal } = refusal(list(items, 1)).details;
    expect([fields!.length, fields!.at(-1)!.pointer]).toEqual([20, "/item_list/items/19"]);
    expect(fieldsTotal).toBe(1_000);
  });

  // A batch of one item has two brackets, each item more a comma.
  const HALF = BATCH_BYTES_LIMIT / 2;
  it.each<[string, number[], number, [pointer: string, detail: string][]]>([
    ["an item of the maximum size", [BATCH_BYTES_LIMIT - 3], 1, []],
    [
      "a larger one",
      [1, BATCH_BYTES_LIMIT - 2],
      1,
      [["/item_list/items/1", `has ${BATCH_BYTES_LIMIT} bytes as a batch of its own`]],
    ],
    ["a batch of the maximum size", [HALF, HALF - 4], 2, []],
    [
      "a larger one",
      [9, 9, HALF, HALF - 3, 9],
      2,
      [["/item_list/items/2", `items 2 to 3 make a batch of ${BATCH_BYTES_LIMIT} bytes`]],
    ],
    ["batches that are too large only in total", [HALF, HALF, HALF, HALF], 1, []],
    [
      "a last batch with fewer items that is too large",
      [9, 9, 9, HALF, HALF],
      3,
      [["/item_list/items/3", `items 3 to 4 make a batch of ${BATCH_BYTES_LIMIT + 3} bytes`]],
    ],
    [
      "a last batch with fewer items that is one byte too large",
      [9, 9, 9, HALF, HALF - 3],
      3,
      [["/item_list/items/3", `items 3 to 4 make a batch of ${BATCH_BYTES_LIMIT} bytes`]],
    ],
    ["a last batch with fewer items of the maximum size", [9, 9, 9, HALF, HALF - 4], 3, []],
    [
      "an item that is too large, which is reported without its batch",
      [9, BATCH_BYTES_LIMIT, HALF, HALF - 4, HALF],
      5,
      [
        ["/item_list/items/1", `has ${BATCH_BYTES_LIMIT + 2} bytes as a batch of its own`],
        ["/item_list/items/0", "items 0 to 4 make a batch of"],
      ],
    ],
    [
      "an item that is too large at the end of its batch",
      [HALF, BATCH_BYTES_LIMIT, HALF],
      2,
      [["/item_list/items/1", `has ${BATCH_BYTES_LIMIT + 2} bytes as a batch of its own`]],
    ],
  ])("apply to %s (%j, by %i)", (_, sizes, batchSize, expected) => {
    // A text has at least its quotes.
    const items = sizes.map((bytes) => (bytes === 1 ? "1" : textItem(bytes))).join(" , ");
    if (expected.length === 0) expect(inputOf(list(items, batchSize))).toMatchObject({ count: sizes.length });
    else refusedWith(list(items, batchSize), ...expected);
  });
});
