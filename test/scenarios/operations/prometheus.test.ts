/** What Prometheus gets, and the alerts in deploy/prometheus, checked by Prometheus' own tool. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { METRICS } from "../../../src/control/metrics.ts";
import { makeCertificate } from "../../harness/certificates.ts";
import { ECHO, project } from "../../harness/projects.ts";
import { root, TestServer } from "../../harness/server.ts";
import { tlsGet } from "../../harness/tls-get.ts";

const RULES = join(root, "deploy", "prometheus", "rules.yaml");
const promtool = (args: string[], input = "") => spawnSync("promtool", args, { input, encoding: "utf8" });
const hasPromtool = promtool(["--version"]).status === 0;

describe("the metrics of a server", () => {
  let server: TestServer;
  afterEach(() => server.stop());

  const scrape = async () => {
    const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    return (await server.fetch("/-/metrics", { headers: { authorization: `Bearer ${token}` } })).text();
  };

  it("tell its build, processes, disk, database and compute", async () => {
    server = new TestServer();
    await server.start({}, ["--gateways", "2"]);
    server.deploy(project(ECHO));
    const text = await scrape();
    const values = (name: string) =>
      [...text.matchAll(new RegExp(`^${name}(?:{(.*)})? (\\S+)$`, "gm"))].map(([, labels, value]) => [
        labels,
        Number(value),
      ]);
    expect(values("quern_build_info")).toEqual([[expect.stringContaining('version="'), 1]]);
    for (const name of ["resident_memory_bytes", "cpu_seconds_total", "open_fds", "start_time_seconds"]) {
      const found = values(`quern_process_${name}`);
      expect(found.map(([labels]) => labels)).toEqual([
        ...['process="parent"', 'process="gateway",number="0"', 'process="gateway",number="1"'],
        'process="controller"',
      ]);
      for (const [, value] of found) expect(value).toBeGreaterThan(0);
    }
    expect([values("quern_gateways"), values("quern_gateways_wanted")]).toEqual(
      Array(2).fill([[undefined, 2]]),
    );
    for (const name of ["quern_disk_free_bytes", "quern_disk_size_bytes", "quern_database_size_bytes"])
      expect(values(name)[0]![1]).toBeGreaterThan(10_000);
    const cpus = (name: string) => values(name).find(([labels]) => labels === 'resource="cpus"')![1];
    expect(cpus("quern_compute_free")).toBeLessThan(cpus("quern_compute_capacity") as number);
    expect(values("quern_compute_waiting")).toEqual([[undefined, 0]]);
    expect(values("quern_certificate_expiry_seconds")).toEqual([]);
  });

  it("tell when its certificate ends", async () => {
    server = new TestServer();
    const { cert, key } = makeCertificate(server.dir);
    await server.start({}, ["--tls-cert", cert, "--tls-key", key]);
    const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    const { body } = await tlsGet(`${server.baseUrl}/-/metrics`, cert, { authorization: `Bearer ${token}` });
    const expiry = Number(/^quern_certificate_expiry_seconds (\d+)$/m.exec(body)![1]);
    expect(expiry).toBeGreaterThan(Date.now() / 1000);
  });

  it.skipIf(!hasPromtool)("are clean for promtool", async () => {
    server = new TestServer();
    await server.start();
    server.deploy(project(ECHO));
    await server.post("/echo", 1);
    const { status, stderr } = promtool(["check", "metrics"], await scrape());
    expect([status, stderr]).toEqual([0, ""]);
  });
});

describe("the alerts", () => {
  it("are about metrics that exist", () => {
    const named = readFileSync(RULES, "utf8").match(/\bquern_[a-z0-9_]+/g)!;
    for (const name of named) expect(Object.keys(METRICS)).toContain(name.replace(/_bucket$/, ""));
  });

  it.skipIf(!hasPromtool)("come with each fault, and not without one", () => {
    const { status, stdout, stderr } = promtool(["test", "rules", RULES.replace(/yaml$/, "test.yaml")]);
    expect([status, stderr], stdout).toEqual([0, ""]);
  });
});
