/** The table of operations is what the server does: no route is missing in it, and none is only there. */
import { describe, expect, it } from "vitest";
import { OPERATIONS } from "../../src/contracts/operations.ts";
import { controlApp } from "../../src/control/app.ts";

/** The gateway's own, and the description itself. */
const ELSEWHERE = ["GET /-/livez", "GET /-/readyz", "GET /-/proof", "GET /-/docs", "GET /-/openapi.json"];

describe("the table of operations", () => {
  it("has every route, and no other", () => {
    const routes = controlApp({} as never)
      .routes.filter(({ method }) => method !== "ALL")
      .map(({ method, path }) => `${method} ${path.replace(/:(\w+)(\{[^}]*\})?/g, "{$1}")}`);
    const described = OPERATIONS.map(({ method, path }) => `${method.toUpperCase()} ${path}`);
    expect(new Set([...routes, ...ELSEWHERE])).toEqual(new Set([...described, ...ELSEWHERE]));
  });

  it("names each operation once", () => {
    const ids = OPERATIONS.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });
});
