/** Which bodies of callers without a key are collected before their requests have a place at the controller. */
import type { IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import { SIGN_IN_BODY_BYTES_LIMIT } from "../../src/contracts/limits/authorization.ts";
import { SMALL_BODY_BYTES } from "../../src/contracts/limits/requests.ts";
import { smallBodyMost } from "../../src/gateway/collect-body.ts";

const SIGN_IN = "POST /-/session";
const chunked = { "transfer-encoding": "chunked" };
const of = (bytes: number) => ({ "content-length": String(bytes) });

describe("a body of a caller without a key is collected first", () => {
  it.each([
    [SIGN_IN, of(60), false, SIGN_IN_BODY_BYTES_LIMIT],
    [SIGN_IN, chunked, false, SIGN_IN_BODY_BYTES_LIMIT],
    ["POST /jobs", of(SMALL_BODY_BYTES), true, SMALL_BODY_BYTES],
  ])("of %s with %j (open: %s)", (line, headers, isOpen, most) => {
    expect(smallBodyMost(request(line, headers), isOpen)).toBe(most);
  });

  it.each([
    ["a sign-in that is too long is refused by its head", SIGN_IN, of(SIGN_IN_BODY_BYTES_LIMIT + 1), false],
    ["there is none", "POST /jobs", {}, true],
    ["a long one has a limit of its own", "POST /jobs", of(SMALL_BODY_BYTES + 1), true],
    ["so may one of unknown length", "POST /jobs", chunked, true],
    ["the controller refuses it by its head", "POST /-/deploy", of(60), false],
  ])("but not if %s", (_, line, headers, isOpen) => {
    expect(smallBodyMost(request(line, headers), isOpen)).toBeUndefined();
  });
});

function request(line: string, headers: object): IncomingMessage {
  const [method, url] = line.split(" ");
  return { method, url, headers } as IncomingMessage;
}
