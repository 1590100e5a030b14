/** A log whose reader stalls: nothing waits for it, and what is lost is told. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { PatientWriter } from "../../src/base/log/patient-writer.ts";
import { eventually } from "../harness/eventually.ts";
import { root } from "../harness/server.ts";

describe("a writer", () => {
  let read: string;
  /** Bytes that the reader takes now. */
  let space: number;
  let lost: number[];
  let writer: PatientWriter;
  beforeEach(() => {
    vi.useFakeTimers();
    [read, space, lost] = ["", Number.POSITIVE_INFINITY, []];
    writer = new PatientWriter(2, {
      onLost: (lines) => {
        lost.push(lines);
        writer.write(`lost ${lines}\n`);
      },
      write: (bytes) => {
        if (space === 0) throw Object.assign(new Error("full"), { code: "EAGAIN" });
        const taken = Buffer.from(bytes.subarray(0, space));
        space -= taken.length;
        read += taken.toString();
        return taken.length;
      },
    });
  });
  afterEach(() => vi.useRealTimers());

  it("writes at once while its reader reads", () => {
    writer.write("one\n");
    expect(read).toBe("one\n");
  });

  it("keeps the order of lines that wait, also of one of which only a part was written", () => {
    space = 2;
    for (const line of ["one\n", "two\n"]) writer.write(line);
    expect(read).toBe("on");
    space = Number.POSITIVE_INFINITY;
    vi.advanceTimersByTime(100);
    expect(read).toBe("one\ntwo\n");
    writer.write("three\n");
    expect([read, lost]).toEqual(["one\ntwo\nthree\n", []]);
  });

  it("loses lines beyond a mebibyte, and tells how many once they can be told", () => {
    space = 0;
    const line = `${"x".repeat(1023)}\n`;
    for (let n = 0; n < 1_100; n++) writer.write(line);
    vi.advanceTimersByTime(10_000);
    expect([read, lost]).toEqual(["", []]);
    space = Number.POSITIVE_INFINITY;
    vi.advanceTimersByTime(100);
    expect(lost).toEqual([76]);
    expect(read).toBe(`${line.repeat(1_024)}lost 76\n`);
  });

  it("forgets lines that nobody can read", () => {
    const broken = new PatientWriter(2, {
      onLost: () => {},
      write: () => {
        throw Object.assign(new Error("gone"), { code: "EPIPE" });
      },
    });
    broken.write("one\n");
    expect(vi.getTimerCount()).toBe(0);
  });
});

it("a process whose log nobody reads goes on", async () => {
  const program = `
    import { processLog } from ${JSON.stringify(join(root, "dist", "base", "log.js"))};
    process.stderr.on("error", () => {});
    for (let n = 0; n < 20_000; n++) processLog().info({ event: "server_ready" }, "x".repeat(200));
    console.log("done");
    setTimeout(() => {}, 60_000);
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out] = (await once(child.stdout, "data")) as [Buffer];
  expect(out.toString()).toBe("done\n");
  let log = "";
  child.stderr.on("data", (text) => (log += String(text)));
  await eventually("the reader hears what is missing", () => log.includes("log_lines_lost"));
  child.kill("SIGKILL");
});
