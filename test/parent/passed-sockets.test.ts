/** Which sockets a service manager has passed, by its variables. */
import { describe, expect, it } from "vitest";
import { meantFor, NO_FDS, passedFds } from "../../src/parent/passed-sockets.ts";

const PID = 77;
const of = (fds: string, names?: string, pid = String(PID)) => ({
  LISTEN_FDS: fds,
  LISTEN_PID: pid,
  ...(names === undefined ? {} : { LISTEN_FDNAMES: names }),
});

describe("passed sockets", () => {
  it("are none without the variable", () => {
    expect(passedFds({}, PID)).toEqual(NO_FDS);
    expect(passedFds(of("0"), PID)).toEqual(NO_FDS);
    expect(meantFor({ LISTEN_PID: "1" }, PID)).toBeUndefined();
  });

  it("are for the main listener, whatever the socket's name is", () => {
    for (const names of [undefined, "", "quern.socket", "unknown", "public"])
      expect(passedFds(of("1", names), PID)).toEqual({ main: 3, control: undefined });
  });

  it("are for the control plane by their name, in any order", () => {
    expect(passedFds(of("2", "public:control"), PID)).toEqual({ main: 3, control: 4 });
    expect(passedFds(of("2", "control:quern.socket"), PID)).toEqual({ main: 4, control: 3 });
    expect(passedFds(of("1", "control"), PID)).toEqual({ main: undefined, control: 3 });
  });

  it("are at most one a listener", () => {
    for (const [count, names] of [
      ["2", "quern.socket:quern.socket"],
      ["2", "control:control"],
      ["2", ""],
      ["3", "a:control:b"],
      ["1000000000000", ""],
    ] as const)
      expect(() => passedFds(of(count, names), PID)).toThrow("one ListenStream=");
    for (const count of ["x", "-1", "1.5"])
      expect(() => passedFds(of(count), PID)).toThrow("must be a number");
  });

  it("of another process are left alone", () => {
    expect(passedFds(of("1", "", "78"), PID)).toEqual(NO_FDS);
    expect(meantFor(of("1", "", "78"), PID)).toBe("78");
    expect(meantFor({ LISTEN_FDS: "1" }, PID)).toBe("no process");
    expect(meantFor(of("1"), PID)).toBeUndefined();
  });
});
