/** The stream of a watch, cut anywhere. */
import { expect, it } from "vitest";
import { WATCH_LINE_BYTES_MAX } from "../../src/contracts/limits/kubernetes/api-server.ts";
import { WatchLines } from "../../src/kubernetes/watch-lines.ts";

const EVENTS = [
  { type: "ADDED", name: "né" },
  { type: "DELETED", name: "日本" },
];
const TEXT = Buffer.from(`${EVENTS.map((event) => JSON.stringify(event)).join("\n")}\n`);

it("gives the same events wherever the stream is cut into chunks", () => {
  for (let at = 0; at <= TEXT.length; at++) {
    const got: unknown[] = [];
    const lines = new WatchLines((event) => got.push(event));
    lines.add(TEXT.subarray(0, at));
    lines.add(TEXT.subarray(at));
    lines.end();
    expect(got, `cut at ${at}`).toEqual(EVENTS);
  }
});

it("says that a stream ended within an event, and gives no part of it", () => {
  const got: unknown[] = [];
  const lines = new WatchLines((event) => got.push(event));
  lines.add(TEXT.subarray(0, TEXT.length - 3));
  expect(() => lines.end()).toThrow("cut off within an event");
  expect(got).toEqual(EVENTS.slice(0, 1));
});

it("refuses what is no event", () => {
  expect(() => new WatchLines(() => {}).add(Buffer.from("<html>\n"))).toThrow();
  const lines = new WatchLines(() => {});
  const part = Buffer.alloc(1024 * 1024, "x");
  const addAll = () => {
    for (let i = 0; i <= WATCH_LINE_BYTES_MAX / part.length; i++) lines.add(part);
  };
  expect(addAll).toThrow("longer than");
});
