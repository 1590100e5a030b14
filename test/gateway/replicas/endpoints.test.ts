import { expect, it } from "vitest";
import { isAllowedOrigin } from "../../../src/access/host-check.ts";
import type { RouteSnapshot } from "../../../src/contracts/routes.ts";
import { Endpoints } from "../../../src/gateway/replicas/endpoints.ts";

const ROUTES = {
  has_keys: false,
  splitters: [],
  apis: ["/jobs", "/a/longer/address"].map((endpoint) => ({
    ...{ kind: "BatchAPI", name: endpoint, endpoint, needs_key: false },
  })),
} as unknown as RouteSnapshot;

function cpuMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

it("finds an API by the beginning of a path, however many segments follow", () => {
  const endpoints = new Endpoints(ROUTES, () => undefined);
  const names = [
    "/jobs",
    "/jobs/",
    "/jobs/1/2",
    "/a/longer/address/7",
    "/a/longer",
    "/job",
    "/jobsx/1",
    "/",
  ].map((path) => endpoints.find(path)?.address.name);
  const long = "/a/longer/address";
  expect(names).toEqual(["/jobs", "/jobs", "/jobs", long, undefined, undefined, undefined, undefined]);
  expect(endpoints.find(`/jobs${"/a".repeat(8000)}`)?.address.name).toBe("/jobs");
  // Looking up each beginning took 90 ms for one path.
  const many = () => {
    for (let i = 0; i < 20; i++) endpoints.find("/a".repeat(8000));
  };
  expect(cpuMs(many)).toBeLessThan(200);
});

it("takes a very long Origin as foreign, without converting it", () => {
  const rules = { isLoopbackListener: true, publicHost: undefined };
  const origin = `http://${"ü".repeat(15_000)}`;
  const many = () => {
    for (let i = 0; i < 20; i++) expect(isAllowedOrigin(origin, [origin], rules)).toBe(false);
  };
  expect(cpuMs(many)).toBeLessThan(100);
  expect(isAllowedOrigin("http://localhost:8080", ["localhost:8080"], rules)).toBe(true);
});
