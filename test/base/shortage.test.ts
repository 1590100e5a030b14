import { describe, expect, it } from "vitest";
import { describeShortage, shortageOf, whenDiskHasSpace } from "../../src/base/disk-full.ts";

const failing = (code: string) => Object.assign(new Error(code), { code });

describe("a shortage of the machine", () => {
  it.each([
    ["ENOSPC", "disk"],
    ["EDQUOT", "disk"],
    ["SQLITE_FULL", "disk"],
    ["EMFILE", "handles"],
    ["ENFILE", "handles"],
    ["EAGAIN", "handles"],
    ["EACCES", undefined],
  ])("%s is a matter of: %s", (code, shortage) => {
    expect(shortageOf(failing(code))).toBe(shortage);
    expect(shortageOf(new Error("it failed", { cause: failing(code) }))).toBe(shortage);
  });

  it("is logged once, and the work is done when the shortage ends", async () => {
    let left = 2;
    const told: string[] = [];
    const work = async () => {
      if (--left > 0) throw failing("EMFILE");
      return "done";
    };
    const onWait = (error: unknown) => told.push(describeShortage(error));
    const signal = new AbortController().signal;
    expect(await whenDiskHasSpace(work, { onWait, signal })).toBe("done");
    expect(told).toEqual(["the server cannot open more files or start more processes"]);
  });
});
