/** What systemd hears, on a real socket. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { processLog } from "../../src/base/log.ts";
import { Systemd, watchdogMs } from "../../src/parent/notify-systemd.ts";
import { eventually } from "../harness/eventually.ts";
import { NotifySocket } from "../harness/notify-socket.ts";
import { processes } from "../harness/processes.ts";

describe("systemd", () => {
  const directory = mkdtempSync(join(tmpdir(), "quern-test-notify-"));
  let socket: NotifySocket | undefined;
  let systemd: Systemd | undefined;
  afterEach(async () => {
    await systemd?.close();
    socket?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const senders = (name: string) =>
    processes().filter(
      ({ ppid, command }) =>
        ppid === process.pid && command.includes(" -I -S -c ") && command.endsWith(`${name} `),
    );
  const hears = (message: string) =>
    eventually(`it hears ${message}`, () => socket!.messages.includes(message));
  const open = async (name: string, variables: object = {}) => {
    socket = await NotifySocket.open(name);
    systemd = new Systemd({ NOTIFY_SOCKET: name, ...variables }, "python3");
    systemd.start();
  };

  it.each([
    ["a path", () => join(mkdtempSync(join(tmpdir(), "quern-test-notify-")), "socket")],
    ["an abstract name", () => `@quern-test-${process.pid}`],
  ])("at %s hears each state once, also if the server ends at once", async (_, name) => {
    await open(name());
    systemd!.ready();
    systemd!.ready();
    systemd!.stopping();
    await systemd!.close();
    await hears("STOPPING=1");
    expect(socket!.messages).toEqual(["READY=1", "STOPPING=1"]);
  });

  it("hears again and again that the server lives, if it has a watchdog", async () => {
    await open(`@quern-test-watched-${process.pid}`, { WATCHDOG_USEC: "100000" });
    await eventually("it hears it ten times", () => socket!.messages.length > 10);
    expect(new Set(socket!.messages)).toEqual(new Set(["WATCHDOG=1"]));
  });

  it("hears the state again from the next sender if one is killed", async () => {
    const name = `@quern-test-killed-${process.pid}`;
    await open(name, { WATCHDOG_USEC: "100000" });
    systemd!.ready();
    await hears("READY=1");
    const [sender] = senders(name);
    process.kill(sender!.pid, "SIGKILL");
    await eventually("another one runs", () => senders(name).some(({ pid }) => pid !== sender!.pid));
    await eventually(
      "it hears the state again",
      () => socket!.messages.filter((message) => message === "READY=1").length === 2,
    );
    await systemd!.close();
    expect(senders(name)).toEqual([]);
  });

  it("is told once that it cannot be told, and hears the state once a sender starts", async () => {
    const said = vi.spyOn(processLog(), "error").mockImplementation(() => {});
    const name = `@quern-test-late-${process.pid}`;
    socket = await NotifySocket.open(name);
    mkdirSync(directory, { recursive: true });
    const python = join(directory, "python");
    systemd = new Systemd({ NOTIFY_SOCKET: name }, python);
    const tries = vi.spyOn(systemd as unknown as { startSender: () => void }, "startSender");
    systemd.start();
    systemd.ready();
    await eventually("it was tried three times", () => tries.mock.calls.length >= 3);
    expect(said.mock.calls).toEqual([
      [{ event: "systemd_not_told" }, expect.stringContaining("cannot tell systemd how the server is")],
    ]);
    said.mockRestore();
    const real = execFileSync("python3", ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" });
    symlinkSync(real.trim(), python);
    await hears("READY=1");
  });

  it("that does not ask costs no process", async () => {
    systemd = new Systemd({}, "no-such-program");
    systemd.start();
    systemd.ready();
    await systemd.close();
    expect(senders("")).toEqual([]);
  });
});

describe("the watchdog", () => {
  it("hears twice in its time, and only of the process that it watches", () => {
    expect(watchdogMs({}, 7)).toBeUndefined();
    expect(watchdogMs({ WATCHDOG_USEC: "0" }, 7)).toBeUndefined();
    expect(watchdogMs({ WATCHDOG_USEC: "nonsense" }, 7)).toBeUndefined();
    expect(watchdogMs({ WATCHDOG_USEC: "60000000" }, 7)).toBe(30_000);
    expect(watchdogMs({ WATCHDOG_USEC: "60000000", WATCHDOG_PID: "7" }, 7)).toBe(30_000);
    expect(watchdogMs({ WATCHDOG_USEC: "60000000", WATCHDOG_PID: "8" }, 7)).toBeUndefined();
  });
});
