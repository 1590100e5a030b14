/** What an overview sends after the first event. */
import { describe, expect, it } from "vitest";
import type { OverviewApi, OverviewShown } from "../../../src/contracts/http/overview-operations.ts";
import { changesBetween } from "../../../src/control/overview/overview-changes.ts";

const api = (name: string, requests_per_s = 0) => ({ name, requests_per_s }) as OverviewApi;

function overview(changed: Partial<OverviewShown> = {}): OverviewShown {
  const part = { total: 1, free: 1, machine: 1 };
  return {
    time: "t1",
    server: { version: "1", started_time: "t0", status: "ok", reasons: [] },
    compute: { cpus: part, memory_bytes: part, gpus: { total: 0, free: 0 } },
    ...{ apis: [api("a"), api("b")], jobs: [], job_counts: { running: 0 }, attention: [] },
    ...changed,
  };
}

describe("the changes between two overviews", () => {
  it("are none if only the time differs", () => {
    expect(changesBetween(overview(), overview({ time: "t2" }))).toBeUndefined();
  });

  it("have the APIs that changed or are new, and the names of those that are gone", () => {
    const after = overview({ time: "t2", apis: [api("b", 5), api("c")] });
    expect(changesBetween(overview(), after)).toEqual({
      time: "t2",
      apis: [api("b", 5), api("c")],
      apis_gone: ["a"],
    });
  });

  it.each([
    ["server", { version: "1", started_time: "t0", status: "degraded" as const, reasons: ["full"] }],
    ["jobs", [{ job_id: "j" } as never]],
    ["job_counts", { running: 1 }],
    ["attention", [{ kind: "queue" } as never]],
  ])("have the whole of %s if anything in it changed", (part, value) => {
    const after = overview({ time: "t2", [part]: value });
    expect(changesBetween(overview(), after)).toEqual({ time: "t2", [part]: value });
  });

  it("applied one after the other to the first overview make the last one", () => {
    const states = [
      overview(),
      overview({ time: "t2", apis: [api("b")], job_counts: { running: 3 } }),
      overview({ time: "t3", apis: [api("a", 2), api("b")] }),
      overview({ time: "t4", apis: [] }),
    ];
    let shown = states[0]!;
    for (const [i, after] of states.slice(1).entries()) {
      const { apis = [], apis_gone = [], ...parts } = changesBetween(states[i]!, after)!;
      const kept = shown.apis.filter(
        ({ name }) => !apis_gone.includes(name) && !apis.some((one) => one.name === name),
      );
      shown = { ...shown, ...parts, apis: [...kept, ...apis].sort((a, b) => (a.name < b.name ? -1 : 1)) };
    }
    expect(shown).toEqual(states.at(-1));
  });
});
