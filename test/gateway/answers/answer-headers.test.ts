/** The headers of a predictor's response: what is added, and what is dropped. */
import { describe, expect, it } from "vitest";
import { answerHeaders } from "../../../src/gateway/answers/answer-headers.ts";

const POLICY = "content-security-policy";

describe("the headers of a predictor's response", () => {
  it.each([
    "text/html",
    "Text/HTML; charset=utf-8",
    " application/xhtml+xml",
    "image/svg+xml",
    "text/xml",
    "application/xml;q=1",
    "multipart/x-mixed-replace; boundary=x",
    "text/plain, text/html",
    "text/plain; a=b, text/html",
    "text/html (x",
    "text/html x",
    "application/json text/html",
    "text/plain;text/html",
    "text/plain\tx",
    "application/x-new-kind-of-page",
    "",
  ])("keep a page (%s) apart from the server's own pages, also beside a policy of its own", (type) => {
    const headers = answerHeaders(
      [
        ["Content-Type", type],
        ["Content-Security-Policy", "default-src *"],
      ],
      "id",
      false,
    );
    expect(headers.join("\n")).toMatch(/Content-Security-Policy\ndefault-src \*\n/);
    expect(headers[headers.indexOf(POLICY) + 1]).toMatch(/^sandbox (?!.*same-origin)/);
  });

  it.each([
    "application/json",
    "application/json; charset=utf-8",
    "application/problem+json",
    "application/x-ndjson",
    "text/plain;charset=UTF-8",
    "application/pdf",
    "image/png",
    'text/csv; header="present"',
    "video/mp4",
  ])("leave others (%s) as they are, and let no browser guess", (type) => {
    const headers = answerHeaders([["content-type", type]], "id", false);
    expect(headers).toEqual([
      "content-type",
      type,
      "x-content-type-options",
      "nosniff",
      "x-request-id",
      "id",
    ]);
  });

  it.each([
    ["none", []],
    ["two", ["text/plain", "application/json"]],
  ])("keep a response with %s as its type apart, too", (_, types) => {
    const headers = answerHeaders(
      types.map((type) => ["content-type", type]),
      "id",
      false,
    );
    expect(headers).toContain(POLICY);
  });

  it("have none of those that only the gateway sets", () => {
    const given = ["Connection", "x-request-id", "X-Content-Type-Options", "Content-Length"];
    const headers = answerHeaders(
      [["content-type", "text/plain"], ...given.map((name): [string, string] => [name, "1"])],
      "id",
      false,
    );
    expect(headers.slice(2)).toEqual(["x-content-type-options", "nosniff", "x-request-id", "id"]);
  });
});
