/** Logs of workers: they are bounded, whatever prints to them, and say what was dropped. */
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { TestServer } from "../../harness/server.ts";

const MIB = 1024 * 1024;
const PRINTING = `
import os, subprocess, sys
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        text = "%09d" + "." * 990
        if payload["by"] == "print":
            for n in range(payload["lines"]): print(text % n)
        if payload["by"] == "one line": print("a" * 3_000_000); print("the end")
        if payload["by"] == "no line":
            for n in range(300): sys.stdout.write("b" * 10_000)
            print()
        if payload["by"] == "child":
            subprocess.run(["sh", "-c", "yes %s | head -c %d" % ("y" * 63, payload["bytes"])])
        if payload["by"] == "raw":
            for n in range(payload["bytes"] // 65536): os.write(1, b"z" * 65535 + b"\\n")
        return "done"
`;

describe("the logs of an API's workers", () => {
  const server = new TestServer();
  const directory = join(server.dataDir, "logs", "apis", "loud");
  beforeAll(async () => {
    await server.start();
    server.deploy({
      "quern.yaml": "- {name: loud, predictor: {path: predictor.py}}\n",
      "predictor.py": PRINTING,
    });
  });
  afterAll(() => server.stop());

  const onDisk = () =>
    readdirSync(directory).reduce((sum, name) => {
      const found = statSync(join(directory, name), { throwIfNoEntry: false });
      return sum + (found?.blocks ?? 0) * 512;
    }, 0);

  /** The most bytes on the disk while a request printed. */
  const peakOf = async (payload: object) => {
    let peak = 0;
    const timer = setInterval(() => (peak = Math.max(peak, onDisk())), 2);
    const answer = await server.post("/loud", payload);
    clearInterval(timer);
    expect(await answer.json()).toBe("done");
    return peak;
  };
  const lines = () => server.cli(["logs", "loud"]).out.trimEnd().split("\n");
  const dropped = (all: string[]) =>
    all.reduce((sum, line) => sum + Number(/quern: (\d+) bytes/.exec(line)?.[1] ?? 0), 0);

  it("take at most 32 MiB, and report every loss", async () => {
    expect(await peakOf({ by: "print", lines: 30_000 })).toBeLessThanOrEqual(32 * MIB);
    const all = lines();
    const numbers = all.flatMap((line) => /(\d{9})\.{990}$/.exec(line)?.[1] ?? []).map(Number);
    expect(numbers.at(-1)).toBe(29_999);
    expect(numbers).toEqual(numbers.map((_, at) => numbers[0]! + at));
    expect(dropped(all)).toBe(
      numbers[0]! * "2026-01-01T00:00:00.000Z 123456789\n".length + numbers[0]! * 990,
    );
    expect(numbers.length * 1024).toBeGreaterThan(8 * MIB);
  });

  it("truncate a line at 64 KiB, and say how much was cut", async () => {
    for (const by of ["one line", "no line"]) await peakOf({ by });
    await eventually("it is there", () => lines().some((line) => line.endsWith(" the end")));
    const long = lines().filter((line) => /aaa|bbb/.test(line));
    expect(long).toHaveLength(2);
    for (const line of long) {
      const [, text, cut] = / ((?:a|b)+) \.\.\. quern: (\d+) bytes of this line were dropped$/.exec(line)!;
      expect(text!.length).toBeGreaterThan(65_000);
      expect(line.length).toBeLessThan(65_600);
      expect(text!.length + Number(cut)).toBe(3_000_000);
    }
  });

  it.each(["child", "raw"])("are bounded too for output that bypasses Python: %s", async (by) => {
    // How far it grows meanwhile depends on when a busy machine lets the server check.
    await peakOf({ by, bytes: 100 * MIB });
    await eventually("it is within its bounds", () => onDisk() <= 32 * MIB);
    const all = lines();
    expect(dropped(all)).toBeGreaterThan(64 * MIB);
    expect(await peakOf({ by: "one line" })).toBeLessThanOrEqual(32 * MIB);
    await eventually("the newest is shown", () => lines().at(-1)!.endsWith(" the end"));
  });

  const projects = () =>
    readdirSync(join(server.dataDir, "projects")).filter((name) => name !== "of-another");
  const deploy = (text: string, names: string[], extra: Record<string, string> = {}) =>
    server.deploy(
      {
        "quern.yaml": names.map((name) => `- {name: ${name}, predictor: {path: predictor.py}}\n`).join(""),
        "predictor.py": PRINTING.replace("the end", text),
        ...extra,
      },
      { wait: extra["dependencies.sh"] === undefined },
    );
  const remove = (name: string) => expect(server.cli(["delete", name, "-y"]).code).toBe(0);

  it("are removed with the API, and so are the project's files when nothing needs them", async () => {
    mkdirSync(join(server.dataDir, "projects", "of-another"), { recursive: true });
    const [first] = projects();
    deploy("the second end", ["loud", "other"]);
    expect(projects()).toHaveLength(2);
    remove("other");
    // The version before can be rolled back to, so its files stay, as do those of the version that is live.
    deploy("dry", ["loud"], { "more.txt": "one" });
    await eventually("what is left is needed", () => projects().length === 3);
    expect(server.cli(["rollback", "loud"]).code).toBe(0);
    remove("loud");
    await eventually("the logs are gone", () => !existsSync(directory));
    await eventually("the files are gone", () => projects().length === 0);
    expect(existsSync(join(server.dataDir, "projects", "of-another"))).toBe(true);
    deploy("the end", ["loud"]);
    expect(projects()).toEqual([first]);
    await peakOf({ by: "one line" });
    await eventually("it is shown", () => lines().at(-1)!.endsWith(" the end"));
    expect(lines().join("")).not.toContain("quern: 1");
    expect(new Set(lines().map((line) => line.split(" ")[1])).size).toBe(1);
  });

  it("are removed, with the workers, if the API is deleted while they start", async () => {
    const gate = join(server.dir, "gate");
    deploy("late", ["late"], { "dependencies.sh": `while [ ! -e ${gate} ]; do sleep 0.05; done\n` });
    const logs = join(server.dataDir, "logs", "apis", "late");
    await eventually("it is being installed", () => existsSync(join(logs, "install.log")));
    remove("late");
    const before = server.workers();
    writeFileSync(gate, "");
    await eventually("it was started", () => existsSync(logs) || projects().length === 1, 60_000);
    await eventually("nothing of it is left", () => !existsSync(logs) && projects().length === 1, 60_000);
    expect(server.workers()).toEqual(before);
  });
});
