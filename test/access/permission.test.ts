/** Which permissions open what. */
import { describe, expect, it } from "vitest";
import { assertOpens, type Need, permissionsOf } from "../../src/access/permission.ts";
import { neededScope } from "../../src/control/requests/needed-scope.ts";

const opens = (claim: string, need: Need) => {
  try {
    assertOpens({ id: "k", permissions: permissionsOf(claim), rate: null }, need);
    return true;
  } catch {
    return false;
  }
};

const READS_JOB = { scope: "submit", api: "jobs", isRead: true } as const;
const CHANGES_JOB = { scope: "submit", api: "jobs", isRead: false } as const;

describe("a permission", () => {
  it.each<[string, Need, boolean]>([
    ["view", { scope: "view" }, true],
    ["view", READS_JOB, true],
    ["view", CHANGES_JOB, false],
    ["view", { scope: "predict", api: "echo" }, false],
    ["view", { scope: "admin" }, false],
    ["admin", { scope: "view" }, true],
    ["submit", { scope: "view" }, false],
    ["submit:jobs", READS_JOB, true],
    ["submit:other", READS_JOB, false],
    ["predict", READS_JOB, false],
    // Both scopes are for the whole server only, so these words grant nothing.
    ["view:jobs", READS_JOB, false],
    ["view:jobs", { scope: "view" }, false],
    ["admin:jobs", CHANGES_JOB, false],
  ])("%s for %j: %s", (claim, need, isOpen) => expect(opens(claim, need)).toBe(isOpen));
});

describe("a request to the control plane", () => {
  it.each([
    ["GET", "/-/apis", "view"],
    ["HEAD", "/-/apis/echo", "view"],
    ["GET", "/-/apis/echo/export", "admin"],
    ["GET", "/-/keys", "admin"],
    ["DELETE", "/-/apis/echo", "admin"],
    ["GET", "/-/apis/echo/", "admin"],
    ["GET", "/-/apis/echo/new", "admin"],
    ["GET", "/-/queues/letters", "submit"],
    ["DELETE", "/-/queues/letters/messages", "admin"],
  ])("%s %s needs %s", (method, path, scope) => expect(neededScope(method, path)).toBe(scope));
});
