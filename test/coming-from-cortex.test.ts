/**
 * The tables of the guide "Coming from Cortex": each row is tried, and each name of Cortex's that the code knows has
 * its row.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseDocument } from "yaml";
import { readConfig } from "../src/apis/config/parse-config.ts";
import { parseSubmission } from "../src/batch/submit/parse-submission.ts";
import { buildProgram } from "../src/command-line.ts";
import { FORMER_GUIDE, FORMER_KEYS } from "../src/contracts/config/former-keys.ts";
import { OPERATIONS } from "../src/contracts/http/operations.ts";
import { root } from "./harness/server.ts";

interface Row {
  former: string;
  here: string;
  more: string;
}

const text = readFileSync(join(root, FORMER_GUIDE), "utf8");

/** The rows of a section; a code in the last column is an example. */
function rowsOf(section: string): Row[] {
  const body = text.split(`## ${section}\n`)[1]!.split("\n## ")[0]!;
  const lines = body.split("\n").filter((line) => line.startsWith("| `"));
  return lines.map((line) => {
    const [former, here, more = ""] = line.slice(2, -2).split(" | ");
    return { former: former!.replaceAll("`", ""), here: here!, more };
  });
}

const exampleOf = ({ more }: Row) => /`([^`]*)`/.exec(more)![1]!;
const withPath = (path: string, value: unknown) =>
  path.split(".").reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Record<string, object>;

describe("keys of the configuration", () => {
  const rows = rowsOf("Keys of the configuration");
  const errorsOf = (path: string, value: unknown) => {
    const given = withPath(path, value);
    const predictor = { path: "p.py", ...given.predictor };
    return readConfig(JSON.stringify([{ name: "a", ...given, predictor }]), "cortex.yaml").errors;
  };

  it.each(rows.filter(({ here }) => here === "same"))("$former is the same", (row) => {
    const example: unknown = parseDocument(exampleOf(row)).toJS();
    expect(errorsOf(row.former, example)).toEqual([]);
    if (!["name", "predictor.path"].includes(row.former)) expect(errorsOf(row.former, null)).toEqual([]);
  });

  it.each(rows.filter(({ here }) => here !== "same"))("$former gets a cure", ({ former }) => {
    const [path, value] = former.split(": ");
    const errors = errorsOf(path!, value ?? 7);
    expect(errors.map(({ guide }) => guide)).toContain(FORMER_GUIDE);
  });

  it("have a row for each one that is refused", () => {
    const known = FORMER_KEYS.map(
      ({ path, value }) => path.join(".") + (value === undefined ? "" : `: ${value}`),
    );
    expect(rows.filter(({ here }) => here !== "same").map(({ former }) => former)).toEqual(known);
  });
});

describe("keys of a submission", () => {
  const input = { item_list: { items: [1], batch_size: 1 } };
  const parse = (given: object) => {
    const hasInput = ["item_list", "file_path_lister", "delimited_files"].some((key) => key in given);
    return parseSubmission(Buffer.from(JSON.stringify({ workers: 1, ...(hasInput ? {} : input), ...given })));
  };

  it.each(rowsOf("Keys of a submission"))("$former is $here", (row) => {
    if (row.here === "same") parse(withPath(row.former, JSON.parse(exampleOf(row)) as unknown));
    else if (row.former === "sqs_dead_letter_queue")
      parse({ [row.former]: { arn: "arn:aws:sqs:us-west-2:123456789012:dead.fifo", max_receive_count: 2 } });
    else {
      const [within, older] = row.former.split(".");
      parse({ [within!]: { [older!]: ["s3://bucket/x"], batch_size: 1 } });
    }
  });
});

describe("arguments", () => {
  const python = (code: string) =>
    spawnSync("python3", ["-c", code], { cwd: join(root, "python"), encoding: "utf8" }).stdout.trim();
  const rows = rowsOf("Arguments and classes");
  const OF_INIT = ["config", "job_spec", "python_client", "tensorflow_client", "onnx_client", "load_model"];

  it.each(rows)("$former is $here", ({ former, here }) => {
    const isOfInit = OF_INIT.includes(former);
    const names = ["self", ...new Set([isOfInit ? "config" : "payload", former])];
    const given = `"${isOfInit ? "__init__" : "predict"}", ${JSON.stringify(names)}, set()`;
    const errors = python(
      `from quern_runtime.signatures import signature_errors\nprint(signature_errors(${given}))`,
    );
    expect(errors === "[]", errors).toBe(here === "same");
  });

  it("have a row for each one that is refused", () => {
    const known = python("from quern_runtime.former import FORMER_ARGUMENTS\nprint(*FORMER_ARGUMENTS)");
    expect(rows.filter(({ here }) => here !== "same").map(({ former }) => former)).toEqual(known.split(" "));
  });
});

describe("commands and calls", () => {
  it.each(rowsOf("Commands"))("$former is $here", ({ here }) => {
    const words = here.replaceAll("`", "").split(" ").slice(1);
    let command = buildProgram(
      async () => {},
      () => {},
    );
    while (words.length > 0 && !words[0]!.startsWith("-")) {
      const name = words.shift()!;
      command = command.commands.find((each) => each.name() === name || each.aliases().includes(name))!;
      expect(command, name).toBeDefined();
    }
    const known = [command, ...parentsOf(command)].flatMap(({ options }) =>
      options.map(({ short }) => short),
    );
    for (const flag of words.filter((word) => word.startsWith("-"))) expect(known).toContain(flag);
  });

  it.each(rowsOf("Calls of the Python client"))("$former is $here", ({ here }) => {
    const [method, path] = here.replaceAll("`", "").split(" ");
    const shape = (address: string) => address.replace(/\{[^}]+\}/g, "{}");
    const known = OPERATIONS.map((each) => `${each.method.toUpperCase()} ${shape(each.path)}`);
    expect(known).toContain(`${method} ${shape(path!)}`);
  });
});

describe("example programs", () => {
  const PROJECTS = "test/former-examples";
  const table = text.split("## Example programs\n")[1]!.split("|---|---|---|---|\n")[1]!;
  const programs = table
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) => {
      const [, here, file, test] = / \| `[^|]+ \| `(.+)` \| `(.+)`: (.+) \|$/.exec(line)!;
      return { here: here!, file: file!, test: test! };
    });

  it.each(programs)("$here is deployed by the named test", ({ here, file, test }) => {
    expect(existsSync(join(root, here))).toBe(true);
    const code = readFileSync(join(root, file), "utf8");
    expect(code).toContain(`"${test}"`);
    expect(code).toContain(basename(here, ".ts"));
  });

  it("have one row each", () => {
    expect(programs.length).toBeGreaterThanOrEqual(16);
    const projects = readdirSync(join(root, PROJECTS)).filter((name) => !name.endsWith(".ts"));
    const listed = programs.map(({ here }) => here);
    expect(listed).toEqual(expect.arrayContaining(projects.map((name) => `${PROJECTS}/${name}`)));
  });
});

type Program = ReturnType<typeof buildProgram>;
function parentsOf(command: Program): Program[] {
  return command.parent === null ? [] : [command.parent, ...parentsOf(command.parent)];
}
