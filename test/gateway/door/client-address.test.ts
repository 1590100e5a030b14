/** The address in responses, as a trusted proxy tells it (docs/contract/addresses.md#trusted-proxies). */
import type { IncomingMessage } from "node:http";
import { expect, it } from "vitest";
import { ClientAddress } from "../../../src/gateway/door/client-address.ts";

const rules = { publicUrl: undefined, trustedProxies: ["10.0.0.0/8"], isTls: false };
const from = (remoteAddress: string, protocol: string) =>
  ({
    socket: { remoteAddress },
    headers: { host: "quern.example", "x-forwarded-proto": protocol },
  }) as unknown as IncomingMessage;

it.each([
  ["10.0.0.1", "https", "https"],
  ["10.0.0.1", "HTTPS, http", "https"],
  ["10.0.0.1", "javascript:alert(1)//", "http"],
  ["10.0.0.1", "", "http"],
  ["10.1.2.3", "ftp", "http"],
  ["192.0.2.1", "https", "http"],
])("%s says %j: the address begins with %s", (address, told, protocol) => {
  expect(new ClientAddress(rules).baseUrl(from(address, told))).toBe(`${protocol}://quern.example`);
});

it.each([
  ["x-forwarded-prefix", "/stage/", "http://quern.example/stage"],
  ["x-forwarded-prefix", "//evil.example", "http://quern.example"],
  ["x-forwarded-prefix", "/\\evil.example", "http://quern.example"],
  ["x-forwarded-prefix", "/a?b", "http://quern.example"],
  ["x-forwarded-host", "other.example:8080", "http://other.example:8080"],
  ["x-forwarded-host", "[::1]:80", "http://[::1]:80"],
  ["x-forwarded-host", "evil.example/x?y", "http://quern.example"],
  ["x-forwarded-host", "a@evil.example", "http://quern.example"],
])("%s: %s makes it %s", (name, told, url) => {
  const request = from("10.0.0.1", "http");
  Object.assign(request.headers, { [name]: told });
  expect(new ClientAddress(rules).baseUrl(request)).toBe(url);
});
