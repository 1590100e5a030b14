/**
 * Which Python environments are removed, and that none in use is. They are made by hand, because their content does not
 * matter here.
 */
import { spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { programOf } from "../../src/base/process-identity.ts";
import { PythonEnvironments } from "../../src/engine/environments/python-environment.ts";
import { watchLog } from "../../src/observe/log-watch.ts";
import { eventually } from "../harness/eventually.ts";

const DAY_MS = 86_400_000;
const KEEP_MS = 14 * DAY_MS;
const [A, B, C] = ["a", "b", "c"].map((letter) => letter.repeat(24)) as [string, string, string];

let directory: string;
let root: string;
let environments: PythonEnvironments;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "quern-sweep-"));
  root = join(directory, "environments");
  environments = new PythonEnvironments({ root, python: "python3", serverEnv: process.env, watchLog });
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const write = (file: string, daysAgo: number) => {
  writeFileSync(file, "");
  const seconds = (Date.now() - daysAgo * DAY_MS) / 1000;
  utimesSync(file, seconds, seconds);
};
/** An environment that was last needed so many days ago; by user, when it was prepared for each. */
function make(id: string, daysAgo: number, uses: Record<string, number> = {}): void {
  mkdirSync(join(root, id, ".quern-uses"), { recursive: true });
  for (const [user, ago] of Object.entries(uses)) write(join(root, id, ".quern-uses", user), ago);
  write(join(root, id, ".quern-complete"), daysAgo);
}
const sweep = (users: string[], { programs = [] as string[], keepMs = KEEP_MS, inDays = 0 } = {}) =>
  environments.sweep({ users: new Set(users), programs }, { nowMs: Date.now() + inDays * DAY_MS, keepMs });

describe("a Python environment", () => {
  it("is removed when nobody has needed it for a while", async () => {
    make(A, 13, { p: 13 });
    make(B, 15, { q: 15 });
    writeFileSync(join(root, `${B}.installer`), "");
    expect(await sweep([])).toEqual([B]);
    expect(readdirSync(root)).toEqual([A]);
    expect(await sweep(["p"])).toEqual([]);
    // It was needed until now.
    expect(await sweep([], { inDays: 13 })).toEqual([]);
    expect(await sweep([], { inDays: 15 })).toEqual([A]);
    expect(readdirSync(root)).toEqual([]);
  });

  it("is kept while one of its users needs it, and only the newest of each user", async () => {
    make(A, 50, { p: 50, q: 60 });
    make(B, 20, { p: 20, "q@3.11": 20 });
    make(C, 20, { q: 70 });
    expect(await sweep(["p", "q"])).toEqual([C]);
    expect(await sweep(["q"], { inDays: 20 })).toEqual([B]);
    expect(await sweep(["q"], { inDays: 40 })).toEqual([]);
  });

  it("is kept while any worker runs in it", async () => {
    make(A, 50);
    make(B, 50);
    // The name of one may be the beginning of another's.
    const worker = spawn("sleep", ["600"], { argv0: join(root, A, "bin", "python") });
    try {
      await eventually("it runs", () => programOf(worker.pid!)?.startsWith(root) === true);
      expect(await sweep([], { programs: [programOf(worker.pid!)!] })).toEqual([B]);
    } finally {
      worker.kill("SIGKILL");
    }
  });

  it("is kept for the full time from now on if an older release made it without users", async () => {
    make(A, 50);
    rmSync(join(root, A, ".quern-uses"), { recursive: true });
    expect(await sweep([])).toEqual([]);
    expect(await sweep([], { inDays: 15 })).toEqual([A]);
  });

  it("is removed if it was never complete, or if a killed server had begun to remove it", async () => {
    mkdirSync(join(root, A, "lib"), { recursive: true });
    mkdirSync(join(root, `.removed-${B}`, "lib"), { recursive: true });
    mkdirSync(join(root, "not-ours"), { recursive: true });
    expect(await sweep([])).toEqual([]);
    expect(readdirSync(root).sort()).toEqual([A, "not-ours"]);
    expect(await sweep([], { inDays: 15 })).toEqual([A]);
    expect(readdirSync(root)).toEqual(["not-ours"]);
  });

  it("forgets deleted users", async () => {
    make(A, 0, { p: 0, former: 15, late: 13 });
    await sweep(["p"]);
    expect(readdirSync(join(root, A, ".quern-uses")).sort()).toEqual(["late", "p"]);
  });

  it("is not removed after it is prepared again, and records its user", async () => {
    const project = join(directory, "project");
    const log = join(directory, "install.log");
    mkdirSync(project);
    writeFileSync(join(project, "dependencies.sh"), 'touch "$VIRTUAL_ENV/made"\n');
    const { virtualEnv } = await environments.prepare(project, log);
    const beforeMs = Date.now();
    utimesSync(join(virtualEnv!, ".quern-complete"), 0, 0);
    await environments.prepare(project, log);
    expect(readdirSync(join(virtualEnv!, ".quern-uses"))).toEqual(["project"]);
    // As if the sweep had asked for the users of environments before this.
    expect(
      await environments.sweep({ users: new Set(), programs: [] }, { nowMs: beforeMs - 1, keepMs: 0 }),
    ).toEqual([]);
    expect(await sweep(["project"], { keepMs: 0, inDays: 1 })).toEqual([]);
    expect(await sweep([], { keepMs: 0, inDays: 2 })).toHaveLength(1);
    expect((await environments.prepare(project, log)).virtualEnv).toBe(virtualEnv);
    expect(existsSync(join(virtualEnv!, "made"))).toBe(true);
  }, 120_000);
});

it("a log of installations is bounded, and a failure still shows its last lines", async () => {
  const project = join(directory, "project");
  const log = join(directory, "install.log");
  mkdirSync(project);
  writeFileSync(log, "former words\n".repeat(1_000_000));
  // The rotation may cut off what is written at the same time, so the last line comes after it.
  const script = "python3 -c 'print(\"much to say\\n\" * 1_000_000)'\nsleep 1\necho the end of it\nfalse\n";
  writeFileSync(join(project, "dependencies.sh"), script);
  await expect(environments.prepare(project, log)).rejects.toThrow(/much to say\n[\s\S]*the end of it$/);
  const bytes = [log, `${log}.1`].map((file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0);
  expect(Math.max(...bytes)).toBeLessThan(12 * 1024 * 1024);
  expect(readFileSync(`${log}.1`, "utf8")).toContain("bytes before this line were dropped");
}, 120_000);
