import { describe, expect, it } from "vitest";
import { lineForPeople } from "../../src/base/log/line.ts";

const line = (fields: object) =>
  lineForPeople(
    JSON.stringify({
      ...{
        level: "warn",
        time: "2026-01-02T03:04:05.678Z",
        name: "controller",
        pid: 7,
        event: "replica_gone",
      },
      ...{ msg: "a replica is gone", ...fields },
    }),
  ).replace(/^\d\d:\d\d:\d\d /, "");

describe("a line of the log for people", () => {
  it("is short, and has the fields and the stack", () => {
    expect(line({})).toBe("warn  a replica is gone\n");
    expect(line({ api: "hello", exit: { signal: "SIGKILL" }, why: null, path: "" })).toBe(
      'warn  a replica is gone (api=hello exit={"signal":"SIGKILL"})\n',
    );
    expect(line({ err: { type: "Error", message: "no", stack: "Error: no\n  at f" } })).toBe(
      "warn  a replica is gone\n    Error: no\n      at f\n",
    );
    expect(line({ msg: "x\ny", why: "a\n12:00:00 error forged" })).toBe(
      "warn  x\\ny (why=a\\n12:00:00 error forged)\n",
    );
    expect(line({ err: "as text" })).toBe("warn  a replica is gone\n    as text\n");
  });
});
