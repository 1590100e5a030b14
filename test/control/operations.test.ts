/** The table of operations matches the server: it lacks no route and has no extra one. */
import { describe, expect, it } from "vitest";
import { openApiDocument } from "../../src/contracts/http/openapi.ts";
import { OPERATIONS } from "../../src/contracts/http/operations.ts";
import { controlApp } from "../../src/control/app.ts";

/** The gateway's own, and the description itself. */
const ELSEWHERE = ["GET /-/livez", "GET /-/readyz", "GET /-/proof", "GET /-/docs", "GET /-/openapi.json"];

describe("the table of operations", () => {
  it("has every route and no others", () => {
    const routes = controlApp({ version: "1", apis: {}, jobs: {}, dashboardDirectory: "" } as never)
      .routes.filter(({ method }) => method !== "ALL")
      .map(({ method, path }) => `${method} ${path.replace(/:(\w+)(\{[^}]*\})?/g, "{$1}")}`);
    const described = OPERATIONS.map(({ method, path }) => `${method.toUpperCase()} ${path}`);
    expect(new Set([...routes, ...ELSEWHERE])).toEqual(new Set([...described, ...ELSEWHERE]));
  });

  it("has no version in its addresses", () => {
    expect(OPERATIONS.map(({ path }) => path).filter((path) => /\/v\d+(\/|$)/.test(path))).toEqual([]);
  });

  it("names each operation once", () => {
    const ids = OPERATIONS.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("lists 429 for each operation that needs a key, because rates and streams are limited", () => {
    const paths = openApiDocument("1", "http://x").paths as Record<
      string,
      Record<string, { responses: object }>
    >;
    const limited = OPERATIONS.filter(({ path, method }) => "429" in paths[path]![method]!.responses);
    const needsKey = ({ id, scope }: (typeof OPERATIONS)[number]) => scope !== undefined || id === "signIn";
    expect(limited).toEqual(OPERATIONS.filter(needsKey));
    expect(limited.map(({ id }) => id)).toEqual(
      expect.arrayContaining(["getJobEvents", "getJobLogs", "getApiLogs", "getResourceLogs", "readAudit"]),
    );
  });
});
