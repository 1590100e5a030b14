/** The server's own log, as whoever operates it reads it. */
import { afterEach, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { ECHO, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

interface Line {
  level: string;
  time: string;
  name: string;
  event: string;
  msg: string;
  [field: string]: unknown;
}

describe("the server's log", () => {
  let server: TestServer;
  afterEach(() => server.stop());

  const lines = () =>
    server.stderr
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("quern is ready at "))
      .map((line) => JSON.parse(line) as Line);
  const line = async (event: string) => {
    await eventually(
      `the log has ${event}`,
      () => lines().some((each) => each.event === event),
      60_000,
      () => server.stderr,
    );
    return lines().find((each) => each.event === event)!;
  };

  it("has a line of JSON for each event, from start to stop", async () => {
    server = new TestServer();
    await server.start();
    expect(await line("server_ready")).toMatchObject({ level: "info", name: "server", url: server.baseUrl });
    server.deploy(project(ECHO));
    expect(await line("api_deployed")).toMatchObject({
      name: "controller",
      api: "echo",
      kind: "RealtimeAPI",
    });
    const job = await server.submit("jobs", { item_list: { items: [1, 2], batch_size: 1 }, workers: 1 });
    await server.ended("jobs", job);
    const end = { api: "jobs", job_id: job, status: "status_succeeded", succeeded: 2, failed_batches: 0 };
    expect(await line("job_ended")).toMatchObject(end);
    process.kill(server.child("gateway"), "SIGKILL");
    expect(await line("process_ended")).toMatchObject({ level: "error", name: "server", end: "SIGKILL" });
    await eventually("it is ready again", () => server.stderr.split("quern is ready at").length === 3);
    server.cli(["delete", "echo", "-y"]);
    expect(await line("api_deleted")).toMatchObject({ api: "echo" });
    await server.stopProcesses();
    expect(
      lines()
        .slice(-2)
        .map(({ event }) => event),
    ).toEqual(["server_stopping", "server_stopped"]);
    for (const { time, msg } of lines())
      expect([new Date(time).toISOString(), typeof msg]).toEqual([time, "string"]);
  });

  it("has only what is important enough", async () => {
    server = new TestServer();
    await server.start({}, ["--log-level", "error"]);
    server.deploy(project(ECHO));
    process.kill(server.child("gateway"), "SIGKILL");
    await line("process_ended");
    expect(new Set(lines().map(({ level }) => level))).toEqual(new Set(["error"]));
  });
});
