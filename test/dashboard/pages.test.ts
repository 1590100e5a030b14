import { describe, expect, it } from "vitest";
import { addressOf } from "../../src/dashboard/address/read-address.ts";
import { apiStatus } from "../../src/dashboard/format/api-status.ts";
import { inTheirPlaces } from "../../src/dashboard/format/in-their-places.ts";
import { changesOf } from "../../src/dashboard/pages/api/version-changes.ts";
import { entryOfPair, historyOf } from "../../src/dashboard/pages/api/version-history.ts";
import { layOut, NODE } from "../../src/dashboard/pages/applications/resource-graph.ts";
import { countsOf } from "../../src/dashboard/pages/jobs/job-counts.ts";
import { letterError } from "../../src/dashboard/pages/queues/letter-error.ts";
import { rootOf } from "../../src/dashboard/server/root.ts";
import type { ApiChange, ResourceState, Version } from "../../src/dashboard/shapes.ts";

const version = (spec: unknown, files: [string, string][]): Version => ({
  api_id: "",
  deployed_time: "",
  is_current: false,
  spec,
  files: files.map(([path, sha256]) => ({ path, sha256, size: 3 })),
});

describe("the pages of the dashboard", () => {
  it("read their address below a prefix, with names as they were", () => {
    const { segments, query } = addressOf("/ml/-/ui/jobs/a%2Fb%20c/01", "?status=x", "/ml/-/ui");
    expect(segments).toEqual(["jobs", "a/b c", "01"]);
    expect(query.get("status")).toBe("x");
    expect(addressOf("/-/ui/jobs/%ff", "", "/-/ui").segments).toEqual(["jobs", "%ff"]);
  });

  it.each([
    ["http://h/-/ui/dashboard-1.js", ""],
    ["https://h:1/models/prod/-/ui/dashboard-1.js", "/models/prod"],
  ])("find the server by their script %s", (url, root) => expect(rootOf(url)).toBe(root));

  it("keep the rows under the mouse in their places", () => {
    const row = (name: string, rate: number) => ({ name, rate });
    const before = [row("a", 1), row("b", 1), row("c", 1)];
    const now = [row("b", 9), row("d", 5), row("a", 2)];
    expect(inTheirPlaces(before, now, ({ name }) => name)).toEqual([
      ...[row("a", 2), row("b", 9), row("c", 1), row("d", 5)],
    ]);
  });

  it.each([
    ["live", null, null, "live"],
    ["live", null, "failing", "failing"],
    ["live", null, "slow", "slow"],
    ["updating", null, "failing", "updating"],
    ["live", "2026-11-28T12:00:00Z", "failing", "paused"],
  ] as const)("say of an API that is %s, paused %s and %s: %s", (status, paused_time, trouble, word) =>
    expect(apiStatus({ status, paused_time, trouble })).toBe(word),
  );

  it("find the newest entry of the versions that were compared", () => {
    const entry = (apiId: string, formerId: string | undefined, time: string) => ({
      ...{ kind: "deployed" as const, apiId, formerId, time, isNewest: true },
      ...{ by: undefined, version: undefined, former: undefined },
    });
    const history = [entry("bb1", "aa1", "3"), entry("aa1", "bb1", "2"), entry("bb1", "aa1", "1")];
    expect(entryOfPair(history, "aa", "bb")).toBe(history[0]);
    expect(entryOfPair(history, "bb", "aa")).toBe(history[1]);
    expect(entryOfPair(history, "cc", "aa")).toBeUndefined();
    expect(entryOfPair(history, null, null)).toBeUndefined();
  });

  it("say which settings and files changed between two versions", () => {
    const before = version({ a: { b: 1, c: [1] }, d: "x" }, [
      ["p.py", "11"],
      ["q.py", "22"],
    ]);
    const after = version({ a: { b: 2, c: [1] }, e: null }, [
      ["p.py", "33"],
      ["q.py", "22"],
    ]);
    expect(changesOf(before, after)).toEqual([
      { what: "a.b", before: "1", after: "2" },
      { what: "d", before: "x", after: undefined },
      { what: "e", before: undefined, after: "null" },
      { what: "p.py", before: "11 (3 bytes)", after: "33 (3 bytes)" },
    ]);
  });

  it("list a rollback as an entry of its own, and older versions by when they were deployed", () => {
    const [v3, v2, v1] = ["v3", "v2", "v1"].map((api_id, at) => ({
      ...version({}, []),
      ...{ api_id, deployed_time: `2026-11-${20 - at}T00:00:00Z`, is_current: api_id === "v3" },
    }));
    const nothing = { times: 1, how: null, by: null, by_name: null };
    const changes: ApiChange[] = [
      {
        ...nothing,
        time: "2026-11-20T00:00:00Z",
        kind: "rolled_back",
        api_id: "v3",
        former_api_id: "gone",
        by: "k1",
        by_name: "ci",
      },
      { ...nothing, time: "2026-11-19T12:00:00Z", kind: "replica_ended", api_id: null, former_api_id: null },
      {
        ...nothing,
        time: "2026-11-19T06:00:00Z",
        kind: "deployed",
        api_id: "gone",
        former_api_id: "v3",
        by: "k2",
      },
      { ...nothing, time: "2026-11-19T03:00:00Z", kind: "deployed", api_id: "v3", former_api_id: "v2" },
    ];
    const shown = historyOf([v3!, v2!, v1!], changes).map(
      ({ kind, apiId, by, version, former, isNewest }) => [
        ...[kind, apiId, by?.name, version?.api_id, former?.api_id, isNewest],
      ],
    );
    expect(shown).toEqual([
      ["rolled_back", "v3", "ci", "v3", undefined, true],
      ["deployed", "gone", "k2", undefined, "v3", true],
      ["deployed", "v3", undefined, "v3", "v2", false],
      ["deployed", "v2", undefined, "v2", "v1", true],
      ["deployed", "v1", undefined, "v1", undefined, true],
    ]);
  });

  it("draw resources in columns as data flows, with a line to each that uses one", () => {
    const resource = (kind: string, name: string, config: unknown = {}) =>
      ({ kind, name, config, status: "ready" }) as ResourceState;
    const { nodes, edges, width } = layOut([
      resource("model", "iris", { features: ["size"], target: "class" }),
      resource("raw_column", "size"),
      resource("raw_column", "class"),
      resource("api", "iris", { model: "iris" }),
    ]);
    expect(
      nodes.map(({ resource: { kind, name }, x }) => [kind, name, x / (NODE.width + NODE.gapX)]),
    ).toEqual([
      ["raw_column", "size", 0],
      ["raw_column", "class", 0],
      ["model", "iris", 1],
      ["api", "iris", 2],
    ]);
    expect(edges.map(({ from, to }) => `${from.resource.name} ${to.resource.kind}`)).toEqual([
      "size model",
      "class model",
      "iris api",
    ]);
    expect(width).toBe(3 * NODE.width + 2 * NODE.gapX);
  });

  it("count what finally failed in a job, and nothing of what never ran", () => {
    const job = {
      status: "status_running" as const,
      batch_metrics: { succeeded: 5, failed: 9 },
      batches_in_queue: 3,
      total_batch_count: 10,
    };
    expect(countsOf(job)).toEqual({ succeeded: 5, failed: 2, total: 10 });
    const ended = { ...job, batches_in_queue: 0, end_time: "2026-11-28T00:00:00Z" };
    expect(countsOf({ ...ended, status: "status_completed_with_failures" }).failed).toBe(5);
    expect(countsOf({ ...ended, status: "status_stopped" }).failed).toBe(0);
    const { total_batch_count: _, ...enqueuing } = job;
    expect(countsOf(enqueuing)).toEqual({ succeeded: 5, failed: 0, total: null });
  });

  it("say the error of a message, also if its queue has cut it", () => {
    expect(letterError({ error: '{"type":"ValueError","message":"no","traceback":"…"}' })).toBe(
      "ValueError: no",
    );
    expect(letterError({ error: '{"type":"Val' })).toBe('{"type":"Val');
    expect(letterError({})).toBe("");
  });
});
