import { describe, expect, it } from "vitest";
import { applyChanges } from "../../src/dashboard/live/apply-changes.ts";
import { readEvents, takeEvents } from "../../src/dashboard/live/read-events.ts";
import type { Overview, OverviewApi } from "../../src/dashboard/shapes.ts";

const api = (name: string, status = "live") => ({ name, status }) as OverviewApi;
const known = {
  time: "1",
  server: { version: "1", started_time: "0", status: "ok", reasons: [] },
  apis: [api("a"), api("b")],
  jobs: [],
  job_counts: {},
  attention: [],
} as unknown as Overview;

describe("the live overview", () => {
  it("takes changed APIs, new ones in their order, and drops those that are gone", () => {
    const next = applyChanges(known, { time: "2", apis: [api("b", "error"), api("aa")], apis_gone: ["a"] });
    expect(next.apis.map(({ name, status }) => [name, status])).toEqual([
      ["aa", "live"],
      ["b", "error"],
    ]);
    expect(next.time).toBe("2");
  });

  it("keeps what the changes do not name as the same objects, so that it is not drawn again", () => {
    const next = applyChanges(known, { time: "2", jobs: [] });
    expect(next.apis).toBe(known.apis);
    expect(next.server).toBe(known.server);
  });

  it("reads events that arrive in pieces of any size", async () => {
    const text = ': hello\n\nevent: overview\ndata: {"a":\ndata: 1}\n\nevent: changes\r\ndata: ä\r\n\r\n';
    const bytes = new TextEncoder().encode(text);
    for (const size of [1, 2, 7, bytes.length]) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
        bytes.slice(at * size, (at + 1) * size),
      );
      const events = [];
      for await (const event of readEvents(ReadableStream.from(pieces) as ReadableStream<Uint8Array>, 1000))
        events.push(event);
      expect(events).toEqual([
        { name: "overview", data: '{"a":\n1}' },
        { name: "changes", data: "ä" },
      ]);
    }
  });

  it("gives up a connection that says nothing", async () => {
    const silent = new ReadableStream<Uint8Array>();
    await expect(readEvents(silent, 20).next()).rejects.toThrow("silent");
  });

  it("keeps an event that has not ended for the next piece", () => {
    expect(takeEvents("data: 1\n\ndata: 2")).toEqual({
      events: [{ name: "message", data: "1" }],
      rest: "data: 2",
    });
  });
});
