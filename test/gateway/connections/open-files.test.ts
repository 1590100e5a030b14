/** How many connections a listener may have. */
import { expect, it } from "vitest";
import { TLS_CONNECTIONS_MAX } from "../../../src/contracts/limits/requests.ts";
import { connectionsMax } from "../../../src/gateway/connections/open-files.ts";

it("a listener with TLS has fewer connections, since each holds more", () => {
  expect(connectionsMax(true)).toBe(Math.min(TLS_CONNECTIONS_MAX, connectionsMax(false)));
  expect(connectionsMax(true)).toBeGreaterThan(0);
});
