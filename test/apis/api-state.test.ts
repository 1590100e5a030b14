/** The state of a deployed API, as responses show it. */
import { describe, expect, it } from "vitest";
import { stateOf, stateOfUnreadable } from "../../src/apis/api-state.ts";
import { type ApiOutline, outlineOf } from "../../src/apis/records/api-outlines.ts";
import { type AnyVersion, exactSpec, exactSpecText } from "../../src/apis/records/api-rows.ts";
import type { ReplicaGroup } from "../../src/apis/replicas/replica-group.ts";
import { stringifyExact } from "../../src/base/json/exact.ts";

const IDS = { api_id: "api-id", predictor_id: "newest", project_id: "project" };
const deployed_time = "2026-01-02T03:04:05.000000000Z";

const outline = (kind: string): ApiOutline => outlineOf(version(kind));

function version(kind: string, more: object = {}): AnyVersion {
  const config = {
    ...{ name: "a", kind, predictor: { path: "predictor.py", config: { n: 1 } } },
    ...{ autoscaling: { min_replicas: 1 }, networking: { endpoint: "/at/a" } },
    ...more,
  };
  return { ...IDS, name: "a", deployed_time, config, configText: '{"n":1.0}' } as unknown as AnyVersion;
}

const replica = (state: string, predictor_id: string, pid: number) => ({
  ...{ state, predictor_id },
  identity: { worker_id: `worker-${pid}`, pid, token: "secret" },
});

/** A group with one replica of the newest version and one of an older one. */
const group = (change: object = {}) =>
  ({
    ...{ version: version("RealtimeAPI"), wanted: 2, wantedBecause: "as configured", upToDate: 1 },
    workers: [replica("ready", "newest", 11), replica("draining", "older", 12)],
    ...change,
  }) as unknown as ReplicaGroup;

const KNOWN = { name: "a", api_id: "api-id", endpoint: "/at/a", last_updated: deployed_time };
const NO_REPLICAS = { up_to_date_replicas: 0, requested_replicas: 0, replicas: [] };

describe("the state of an API", () => {
  it.each(["BatchAPI", "TrafficSplitter"])("is live without replicas for a %s", (kind) => {
    const state = stateOf(outline(kind), undefined);
    expect(state).toMatchObject({ ...KNOWN, kind, status: "live", ...NO_REPLICAS });
    expect(stateOf(outline(kind), group())).toEqual(state);
  });

  it("is updating until a RealtimeAPI has a group of replicas", () => {
    expect(stateOf(outline("RealtimeAPI"), undefined)).toMatchObject({
      ...{ ...KNOWN, kind: "RealtimeAPI", status: "updating" },
      ...NO_REPLICAS,
    });
  });

  it("has the replicas of a RealtimeAPI, without their secrets", () => {
    expect(stateOf(outline("RealtimeAPI"), group())).toEqual({
      ...{ ...KNOWN, kind: "RealtimeAPI", status: "updating" },
      ...{ up_to_date_replicas: 1, requested_replicas: 2, requested_because: "as configured" },
      replicas: [
        { worker_id: "worker-11", pid: 11, state: "ready", is_up_to_date: true },
        { worker_id: "worker-12", pid: 12, state: "draining", is_up_to_date: false },
      ],
    });
  });

  it("says that an installation takes long, unless there is something worse", () => {
    const said = { message: "it still runs" };
    expect(stateOf(outline("BatchAPI"), undefined, said.message)).toMatchObject({ status: "live", ...said });
    const realtime = (change?: object) => stateOf(outline("RealtimeAPI"), group(change), said.message);
    expect(realtime()).toMatchObject({ status: "updating", ...said });
    const failure = "no module named x";
    expect(realtime({ upToDate: 0, failure })).toMatchObject({ status: "error", message: failure });
  });

  it("hides secrets in the address of a package that cannot be installed", () => {
    const failure = "pip: no matching distribution at https://packages/simple?sig=SECRET";
    expect(stateOf(outline("RealtimeAPI"), group({ upToDate: 0, failure })).message).toBe(
      "pip: no matching distribution at https://packages/simple?sig=***",
    );
  });

  it("has a message only if there is something to tell", () => {
    const failed = stateOf(outline("RealtimeAPI"), group({ upToDate: 0, failure: "no module named x" }));
    expect(failed).toMatchObject({ status: "error", message: "no module named x" });
    expect(stateOf(outline("RealtimeAPI"), group())).not.toHaveProperty("message");
  });
});

describe("the configuration of an API", () => {
  it.each([
    ["has its numbers as they were written", version("BatchAPI")],
    ["may have no config", version("BatchAPI", { predictor: { path: "p.py", config: null } })],
    ["may have no predictor", version("TrafficSplitter", { predictor: undefined })],
  ])("%s, as text and as a value", (_, version) => {
    expect(exactSpecText(version)).toBe(stringifyExact(exactSpec(version)));
  });
});

describe("the state of an API whose row cannot be read", () => {
  it("is an error with the reason, at the API's default address", () => {
    const unreadable = {
      name: "a",
      kind: "BatchAPI" as const,
      api_id: "api-id",
      deployed_time,
      why: "it is empty",
    };
    expect(stateOfUnreadable(unreadable)).toEqual({
      ...{ ...KNOWN, kind: "BatchAPI", endpoint: "/a" },
      ...{ status: "error", message: "it is empty", ...NO_REPLICAS },
    });
  });
});
