import { describe, expect, it } from "vitest";
import { targetFault } from "../../../src/gateway/door/request-target.ts";

describe("a request's path", () => {
  it.each([
    "/",
    "/echo",
    "/echo/",
    "/models/iris.v2/",
    "/-/apis/a",
    "/-/queues/arn%3Aaws%3Asqs%3Aus-east-1%3A000%3Aletters.fifo/messages",
    "/-/queues/a%2Fb%20c%25/messages",
    "/-/applications/iris/resources/%C3%A9",
    "/jobs/01abc/failures",
    "/a.b/..c/.well-known/x...",
    "/a;b=c,d/@me/(x)*",
  ])("is accepted: %s", (path) => {
    expect(targetFault(path)).toBeUndefined();
  });

  it.each([
    ["*", "must begin with /"],
    ["http://localhost/-/keys", "must begin with /"],
    ["HTTP://x/-/keys", "must begin with /"],
    ["/x/../-/keys", "segments . and .."],
    ["/x/..", "segments . and .."],
    ["/./-/keys", "segments . and .."],
    ["/x/%2e%2E/-/keys", "write . as it is, instead of %2e"],
    ["/%2D/apis", "write - as it is, instead of %2D"],
    ["/%69nner-jobs", "write i as it is"],
    ["/%7Euser", "write ~ as it is"],
    ["//localhost/-/keys", "empty segment"],
    ["/jobs//x", "empty segment"],
    ["/x\\..\\-\\keys", '"\\\\" must be percent-encoded'],
    ["/x%00", "control characters"],
    ["/x%0a", "control characters"],
    ["/x#/-/keys", '"#" must be'],
    ["/%", "two hexadecimal digits"],
    ["/%2", "two hexadecimal digits"],
    ["/%zz", "two hexadecimal digits"],
    ["/caf\u00e9", "must be percent-encoded"],
  ])("is refused: %s", (path, fault) => {
    expect(targetFault(path)).toContain(fault);
  });
});
