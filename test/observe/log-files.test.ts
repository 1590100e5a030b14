/** Reading logs that are rotated meanwhile, and rotating logs that other programs write. */
import {
  appendFileSync,
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { appendLogLine, type LogLine, readLogLines, removeFormerLogs } from "../../src/observe/log-files.ts";
import { rotateLog } from "../../src/observe/log-rotation.ts";
import { watchLog } from "../../src/observe/log-watch.ts";
import { eventually } from "../harness/eventually.ts";

const MIB = 1024 * 1024;
const TIME = "2026-01-01T00:00:00.000Z";

describe("the log of a worker", () => {
  let directory: string;
  let file: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "quern-logs-"));
    file = join(directory, "r-1.log");
    writeFileSync(file, "");
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  const write = (from: number, to: number) => {
    let text = "";
    for (let n = from; n < to; n++) text += `${TIME} ${String(n).padStart(6, "0")}${".".repeat(92)}\n`;
    appendFileSync(file, text);
  };
  const rotate = (keep = 8 * MIB) => {
    const fd = openSync(file, "a+");
    expect(rotateLog(file, fd, keep)).toBe(true);
    closeSync(fd);
  };
  const all = async () => {
    const lines: string[] = [];
    for await (const some of readLogLines(directory, false, async () => true))
      lines.push(...some.map(({ line }) => line));
    return lines;
  };
  const numbers = (lines: string[]) =>
    lines.flatMap((line) => /^(\d{6})\./.exec(line)?.[1] ?? []).map(Number);

  it("is followed across rotations, each line exactly once", async () => {
    const seen: string[] = [];
    let isOver = false;
    const reading = (async () => {
      for await (const some of readLogLines(directory, true, async () => isOver))
        seen.push(...some.map(({ line }) => line));
    })();
    for (let round = 0; round < 4; round++) {
      write(round * 1000, round * 1000 + 700);
      if (round % 2 === 1) await eventually("it is read", () => seen.length === round * 1000 + 700);
      rotate();
      write(round * 1000 + 700, round * 1000 + 1000);
      await eventually("it is read", () => seen.length === round * 1000 + 1000);
    }
    isOver = true;
    await reading;
    expect(numbers(seen)).toEqual(Array.from({ length: 4000 }, (_, n) => n));
  });

  it("is merged with others in the order of time, even if it is much longer", async () => {
    const stamp = (ms: number) => new Date(Date.parse(TIME) + ms).toISOString();
    const text = (every: number) => {
      let lines = "";
      for (let ms = 0; ms < 6000; ms += every) lines += `${stamp(ms)} ${"x".repeat(92)}\n`;
      return lines;
    };
    writeFileSync(file, text(1));
    for (const name of ["install.log", "server.log"]) writeFileSync(join(directory, name), text(500));
    const times: string[] = [];
    for await (const some of readLogLines(directory, false, async () => true))
      times.push(...some.map(({ time }) => time));
    expect(times.length).toBe(6000 + 12 + 12);
    expect(times).toEqual([...times].sort());
  });

  it("is read a few thousand lines at a time, also if they are empty: a reader that stops holds no more", async () => {
    writeFileSync(file, "\n".repeat(32_768));
    const reading = readLogLines(directory, true, async () => true);
    const first: LogLine[] = (await reading.next()).value;
    expect(first.length).toBeLessThanOrEqual(4_000);
    // What it has not read yet changes.
    const fd = openSync(file, "r+");
    writeSync(fd, "x\n".repeat((32_768 - first.length) / 2), first.length);
    closeSync(fd);
    for await (const some of reading) first.push(...some);
    expect(first.filter(({ line }) => line === "x")).toHaveLength((32_768 - 4_000) / 2);
  });

  it("is no longer read soon after its reader has left, also if no line comes", async () => {
    write(0, 10);
    const following = readLogLines(directory, true, async () => false);
    expect((await following.next()).value).toHaveLength(10);
    // As a response reads: it waits for lines when its client leaves.
    let isOver = false;
    const waiting = (async () => {
      while (!(await following.next()).done);
      isOver = true;
    })();
    const left = following.return(undefined);
    await eventually("it is over", () => isOver, 10_000);
    await Promise.all([waiting, left]);
  });

  it("reports where bytes were dropped, and how many", async () => {
    write(0, 1000);
    rotate();
    write(1000, 1500);
    rotate(200 * 124);
    write(1500, 1600);
    const [first, ...lines] = await all();
    expect(first).toBe(
      `quern: ${1300 * 124} bytes before this line were dropped; a worker's log keeps its newest 8 to 16 MiB`,
    );
    expect(numbers(lines)).toEqual(Array.from({ length: 300 }, (_, n) => 1300 + n));
  });

  it("shows 64 KiB of a line that C code wrote, and never cuts a character", async () => {
    appendFileSync(file, `${TIME} ${"z".repeat(3 * MIB)}\n${TIME} ${"é".repeat(20_000)}\n`);
    const [long, whole] = await all();
    const [, text, cut] = /^(z+) \.\.\. quern: (\d+) bytes of this line were dropped$/.exec(long!)!;
    expect([text!.length, text!.length + Number(cut)]).toEqual([65_536 - TIME.length - 1, 3 * MIB]);
    expect(whole).toBe("é".repeat(20_000));
  });

  it("is bounded by the server even if other programs write it", async () => {
    const unwatch = watchLog(file);
    for (let n = 0; n < 5; n++) {
      appendFileSync(file, `${"x".repeat(1023)}\n`.repeat(11 * 1024));
      await eventually("it is small", () => statSync(file).size < MIB);
    }
    unwatch();
    const [first] = await all();
    expect(Number(/^quern: (\d+) bytes/.exec(first!)![1])).toBeGreaterThan(44 * MIB);
    expect(statSync(`${file}.1`).size).toBeLessThanOrEqual(9 * MIB);
  });

  it("is bounded too if the server writes it", () => {
    writeFileSync(file, "x".repeat(9 * MIB));
    appendLogLine(file, "the end");
    expect(statSync(file).size).toBeLessThan(100);
    expect(readdirSync(directory).sort()).toEqual(["r-1.log", "r-1.log.1"]);
  });

  it("is removed if it is one of many old ones and its worker has ended", async () => {
    const old = (n: number) => new Date(Date.now() - 3_600_000 - n * 1000);
    for (let n = 0; n < 20; n++) {
      const name = join(directory, `r-a${n}.log`);
      writeFileSync(name, "");
      writeFileSync(`${name}.1`, "");
      utimesSync(name, old(n), old(n));
    }
    for (const name of ["server.log", "install.log"]) writeFileSync(join(directory, name), "");
    await removeFormerLogs(directory, async () => new Set(["r-a19"]));
    const left = readdirSync(directory).filter((name) => name.startsWith("r-a"));
    const kept = [...Array.from({ length: 10 }, (_, n) => n), 19];
    expect(left.sort()).toEqual(kept.flatMap((n) => [`r-a${n}.log`, `r-a${n}.log.1`]).sort());
    expect(readdirSync(directory)).toEqual(expect.arrayContaining(["server.log", "install.log", "r-1.log"]));
  });
});
