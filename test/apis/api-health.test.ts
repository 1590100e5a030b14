import { expect, it } from "vitest";
import { healthOf } from "../../src/apis/api-health.ts";
import type { ApiState } from "../../src/apis/api-state.ts";

function api(status: ApiState["status"], states: ApiState["replicas"][number]["state"][], message?: string) {
  const replicas = states.map((state) => ({ worker_id: "r", pid: 1, state, is_up_to_date: true }));
  const counts = { up_to_date_replicas: 0, requested_replicas: 1, replicas };
  const known = {
    name: "x",
    kind: "RealtimeAPI" as const,
    api_id: "v",
    endpoint: "/x",
    last_updated: "",
    spec: {},
  };
  return { ...known, ...counts, status, ...(message === undefined ? {} : { message }) };
}

it.each([
  ["serves", api("live", ["ready"])],
  ["is scaled to zero", api("live", [])],
  ["starts for the first time", api("updating", ["initializing"])],
  ["is updated", api("updating", ["ready", "initializing"])],
])("an API that %s needs nobody", (_, state) => {
  expect(healthOf(state, false)).toEqual({});
});

it.each([
  ["cannot start", api("error", [], "ValueError: no model"), 'x is in status "error": ValueError: no model'],
  [
    "starts again after a failure",
    api("error", ["initializing"], "no model"),
    'x is in status "error": no model',
  ],
  ["lacks compute", api("compute unavailable", [], "1 of 1"), 'x is in status "compute unavailable": 1 of 1'],
])("an API that %s needs a person", (_, state, fault) => {
  expect(healthOf(state, false)).toEqual({ fault });
});

it("an API whose replicas keep dying needs a person, also while one is ready", () => {
  expect(healthOf(api("live", ["ready"]), true).fault).toMatch(
    /x: its replicas keep dying .* `quern logs x`/,
  );
});

it.each([
  ["a former version serves", api("error", ["ready"], "ValueError: no model")],
  ["its first installation takes long", api("updating", [], "the installation still runs")],
  ["the installation of a new version takes long", api("updating", ["ready"], "the installation still runs")],
  ["the installation for a job takes long", api("live", [], "the installation still runs")],
  ["some of its replicas lack compute", api("live", ["ready"], "1 of 3 replicas wait for compute: 2 CPU")],
])("if %s, it is a warning", (_, state) => {
  const { fault, warning } = healthOf(state, false);
  expect(fault).toBeUndefined();
  expect(warning).toContain(state.message!);
});
