/**
 * Every guide works as written. A fenced block whose info string names a file is written; `sh` blocks run in order, in
 * one directory and with one set of variables; a `text` block after them is their output, in which `…` stands for any
 * text. `quern up` is left to the harness; `skip` is for what needs another machine.
 */
import { spawn } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { root, TestServer } from "./harness/server.ts";
import { isS3Installed, startS3, type TestS3 } from "./harness/stores.ts";

const directory = join(root, "docs", "guides");
/** With the packages of applications, so that nothing is installed for them. */
const PYTHON = join(root, ".servers", "python", "bin", "python");
/** With the programs that read outputs: `aws`, and a Python with pandas and DuckDB. */
const READERS = join(root, ".servers", "reading", "bin");
/** Guides that need S3. `node scripts/servers.mjs` installs a server. */
const WITH_S3: ReadonlySet<string> = new Set(["reading-outputs.md"]);

interface Block {
  language: string;
  name: string;
  text: string;
}

function blocksOf(guide: string): Block[] {
  const text = readFileSync(join(directory, guide), "utf8");
  return [...text.matchAll(/^```(\w+) ?(\S*)\n([\s\S]*?)^```$/gm)].map(([, language, name, body]) => ({
    language: language!,
    name: name!,
    text: body!,
  }));
}

describe("the guide", () => {
  let server: TestServer;
  let work: string;
  let s3: TestS3 | undefined;
  beforeEach(() => {
    work = realpathSync(mkdtempSync(join(tmpdir(), "quern-guide-")));
    server = new TestServer({ QUERN_ALLOW_LOCAL_ROOT: work, QUERN_PYTHON: PYTHON });
    mkdirSync(join(server.dir, "bin"));
    const quern = `#!/bin/sh\nexec "${process.execPath}" "${join(root, "bin", "quern")}" "$@"\n`;
    writeFileSync(join(server.dir, "bin", "quern"), quern, { mode: 0o755 });
  });
  afterEach(async () => {
    await server.stop();
    await s3?.stop();
    s3 = undefined;
    rmSync(work, { recursive: true, force: true });
  });

  const run = (text: string): Promise<{ code: number; out: string; err: string }> => {
    const lines = text.split("\n").filter((line) => !/^quern up\b.*&$/.test(line));
    const state = join(server.dir, "state.sh");
    const script = `set -ea; [ -f ${state} ] && . ${state}; ${lines.join("\n")}\ndeclare -p JOB KEY > ${state} 2> /dev/null || true`;
    const child = spawn("bash", ["-c", script], {
      cwd: work,
      env: {
        ...process.env,
        ...s3?.env,
        PATH: [join(server.dir, "bin"), ...(s3 === undefined ? [] : [READERS]), process.env.PATH].join(":"),
        QUERN_DATA_DIR: server.dataDir,
        QUERN_HOST: server.baseUrl,
        XDG_CONFIG_HOME: join(server.dir, "config"),
        PYTHON,
        NO_COLOR: "1",
      },
    });
    const said = { out: "", err: "" };
    child.stdout.on("data", (more) => (said.out += String(more)));
    child.stderr.on("data", (more) => (said.err += String(more)));
    return new Promise((resolve) => child.once("close", (code) => resolve({ code: code ?? -1, ...said })));
  };

  const guides = readdirSync(directory).filter((guide) => isS3Installed || !WITH_S3.has(guide));
  if (!isS3Installed) it.skip.each([...WITH_S3])("%s works as it is written", () => {});

  it.each(guides)(
    "%s works as it is written",
    async (guide) => {
      if (WITH_S3.has(guide)) s3 = await startS3();
      await server.start(s3?.env);
      const blocks = blocksOf(guide);
      let printed = "";
      for (const { language, name, text } of blocks) {
        if (name === "skip") continue;
        if (name !== "") writeFileSync(join(work, name), text);
        else if (language === "sh") {
          const { code, out, err } = await run(text);
          expect(code, `${text}\n${out}${err}`).toBe(0);
          printed = out;
        } else if (language === "text") expect(printed.replace(/ +$/gm, "")).toMatch(patternOf(text));
        else throw new Error(`a block of ${language} without a name`);
      }
      expect(blocks.some(({ language }) => language === "sh")).toBe(true);
    },
    120_000,
  );
});

/** The text, with `…` for anything and any run of spaces for another. */
function patternOf(text: string): RegExp {
  const escaped = text.trimEnd().replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`^${escaped.replaceAll("…", "[\\s\\S]*").replace(/ {2,}/g, " +")}\\s*$`);
}
