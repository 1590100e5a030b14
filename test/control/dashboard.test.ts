/** The Grafana dashboard, as far as it can be checked without Grafana: its form, its metrics and its queries. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { METRICS } from "../../src/control/metrics.ts";
import { root } from "../harness/server.ts";

interface Panel {
  id: number;
  title: string;
  type: string;
  gridPos: { x: number; y: number; w: number; h: number };
  datasource?: { type: string; uid: string };
  targets?: { refId: string; datasource: { type: string; uid: string }; expr: string }[];
}

interface Variable {
  name: string;
  type: string;
  query: string | { query: string };
}

const text = readFileSync(join(root, "deploy", "grafana", "dashboard.json"), "utf8");
const dashboard = JSON.parse(text) as {
  schemaVersion: number;
  panels: Panel[];
  templating: { list: Variable[] };
};
const { panels } = dashboard;
const targets = panels.flatMap((panel) => panel.targets ?? []);
const variables = new Map(dashboard.templating.list.map((variable) => [variable.name, variable]));
const hasPromtool = spawnSync("promtool", ["--version"]).status === 0;

/** The names that Prometheus has for the metrics of a server. */
const NAMES = Object.entries(METRICS).flatMap(([name, [type]]) =>
  String(type) === "histogram" ? ["_bucket", "_sum", "_count"].map((end) => name + end) : [name],
);
const namesIn = (query: string) => query.match(/\bquern_[a-z0-9_]+/g) ?? [];
/** As Grafana sends the query. */
const sent = (expr: string) =>
  expr
    .replaceAll("$__rate_interval", "1m")
    .replaceAll("$__range", "6h")
    .replace(/\$(\w+)/g, (_, name: string) => {
      expect(variables.has(name), name).toBe(true);
      return ".*";
    });

describe("the dashboard", () => {
  it("has rows of panels that do not overlap, each with a title of its own", () => {
    expect(dashboard.schemaVersion).toBe(39);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
    const rows = panels.filter(({ type }) => type === "row").map(({ title }) => title);
    expect(rows).toEqual(["Overview", "Requests", "Jobs and batches", "Workers and compute", "Server"]);
    const taken = new Set<string>();
    for (const { title, gridPos } of panels)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect([x < 24, taken.has(`${x} ${y}`)], title).toEqual([true, false]);
          taken.add(`${x} ${y}`);
        }
  });

  it("asks the data source that its reader chooses, for the servers and APIs that they choose", () => {
    expect(variables.get("datasource")).toMatchObject({ type: "datasource", query: "prometheus" });
    const chosen = { type: "prometheus", uid: `\${datasource}` };
    for (const { type, title, datasource, targets = [] } of panels) {
      expect(targets.length > 0, title).toBe(type !== "row");
      if (type !== "row") expect(datasource, title).toEqual(chosen);
      for (const target of targets) {
        expect(target.datasource, title).toEqual(chosen);
        for (const [selector] of target.expr.matchAll(/\{[^}]*\}/g))
          expect(selector, title).toContain('instance=~"$instance"');
      }
    }
  });

  it("shows each metric, and none that does not exist", () => {
    const asked = new Set(targets.flatMap(({ expr }) => namesIn(expr)));
    const listed = [...variables.values()].flatMap(({ query }) => namesIn(JSON.stringify(query)));
    for (const name of [...asked, ...listed]) expect(NAMES).toContain(name);
    const shown = (name: string) => asked.has(name) || asked.has(`${name}_bucket`);
    expect(Object.keys(METRICS).filter((name) => !shown(name))).toEqual([]);
  });

  it.skipIf(!hasPromtool)("has queries that Prometheus can read", () => {
    const directory = mkdtempSync(join(tmpdir(), "quern-dashboard-"));
    const rules = targets.map(({ expr }, at) => ({ record: `dashboard:query_${at}`, expr: sent(expr) }));
    const file = join(directory, "rules.yaml");
    writeFileSync(file, stringify({ groups: [{ name: "dashboard", rules }] }));
    const { status, stdout, stderr } = spawnSync("promtool", ["check", "rules", file], { encoding: "utf8" });
    rmSync(directory, { recursive: true });
    expect([status, stderr], stdout).toEqual([0, ""]);
    expect(stdout).toContain(`${targets.length} rules found`);
  });
});
