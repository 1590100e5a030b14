/** Which headers Node's parser accepts, and a gateway does not. */
import { describe, expect, it } from "vitest";
import { HEADERS_OF_A_REQUEST_MAX, QUERY_PARAMETERS_MAX } from "../../../src/contracts/limits/requests.ts";
import { headFault } from "../../../src/gateway/door/head-fault.ts";

const statusOf = (...rawHeaders: string[]) => headFault({ rawHeaders, httpVersion: "1.1", url: "/" })?.status;

describe("the head of a request", () => {
  it.each([
    [["Host", "localhost", "Content-Length", "2"]],
    [["Host", "localhost", "X-Forwarded-Host", "a", "Path", "b"]],
    [["host", "localhost", "transfer-encoding", "chunked"]],
    [["Host", "localhost", ...Array<string>(2 * HEADERS_OF_A_REQUEST_MAX - 2).fill("a")]],
    [["Host", "localhost", "Transfer-Encoding", "Chunked"]],
  ])("is accepted with %j", (headers) => {
    expect(statusOf(...headers)).toBeUndefined();
  });

  it.each([
    [400, []],
    [400, ["Host", "localhost", "host", "localhost"]],
    [400, ["host", "a", "x-host", "b", "HOST", "c"]],
    [501, ["Host", "localhost", "Transfer-Encoding", "gzip, chunked"]],
    [501, ["Host", "localhost", "Transfer-Encoding", "chunked", "transfer-encoding", "chunked"]],
    [501, ["Host", "localhost", "Transfer-Encoding", "gzip", "Transfer-Encoding", "chunked"]],
    [501, ["Host", "localhost", "Transfer-Encoding", "identity"]],
    [501, ["Host", "localhost", "Transfer-Encoding", ""]],
    [431, Array<string>(2 * HEADERS_OF_A_REQUEST_MAX + 2).fill("a")],
  ])("is a %s with %j", (status, headers) => {
    expect(statusOf(...headers)).toBe(status);
  });

  it.each(["0.9", "2.0"])("is a 505 with HTTP/%s", (httpVersion) => {
    expect(headFault({ rawHeaders: ["Host", "localhost"], httpVersion, url: "/" })?.status).toBe(505);
  });

  it("has no transfer coding with HTTP/1.0", () => {
    const rawHeaders = ["Transfer-Encoding", "chunked"];
    expect(headFault({ rawHeaders, httpVersion: "1.0", url: "/" })?.status).toBe(501);
    expect(headFault({ rawHeaders: ["Content-Length", "2"], httpVersion: "1.0", url: "/" })).toBeUndefined();
  });

  it.each([
    [undefined, `/a&b?${"&".repeat(QUERY_PARAMETERS_MAX - 1)}`],
    [400, `/?${"a&".repeat(QUERY_PARAMETERS_MAX)}`],
    [undefined, `/${"&".repeat(2 * QUERY_PARAMETERS_MAX)}?a=${"b".repeat(2 * QUERY_PARAMETERS_MAX)}`],
    [400, `/?a?${"&".repeat(QUERY_PARAMETERS_MAX)}`],
  ])("is %s with as many query parameters as in this path", (status, url) => {
    expect(headFault({ rawHeaders: ["Host", "localhost"], httpVersion: "1.1", url })?.status).toBe(status);
  });
});
