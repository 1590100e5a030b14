/** The capability with which user code calls other APIs: made for a version's first worker, ended with its last. */
import { expect, it } from "vitest";
import { Capabilities, capabilityHash } from "../../src/access/capabilities.ts";
import type { CapabilityRoute } from "../../src/contracts/routes.ts";

const published: CapabilityRoute[][] = [];
const make = (workers: { worker_id: string; route: CapabilityRoute }[] = []) =>
  new Capabilities(
    {
      port: 8421,
      publish: (routes) => published.push(routes),
      waitUntilApplied: () => Promise.reject(new Error("no gateway")),
    },
    workers,
  );
const a = { name: "a", predictor_id: "1" };

it("the workers of a version share one capability, which ends with the last of them", async () => {
  const capabilities = make();
  const first = capabilities.give("w1", a);
  expect(first.sha256).toBe(capabilityHash(8421, first.text));
  expect(published.at(-1)).toEqual([{ sha256: first.sha256, api: "a" }]);
  // A gateway that does not answer does not delay the start of a worker.
  await first.isKnown;
  const before = published.length;
  expect(capabilities.give("w2", a)).toBe(first);
  capabilities.end("w1");
  capabilities.end("nobody");
  expect(published.length).toBe(before);
  const other = capabilities.give("w3", { ...a, predictor_id: "2" });
  capabilities.end("w2");
  capabilities.end("w2");
  expect(published.at(-1)).toEqual([{ sha256: other.sha256, api: "a" }]);
  const again = capabilities.give("w4", a);
  expect(again.text).not.toBe(first.text);
});

it("the capability of adopted workers stays valid beside that of new workers", () => {
  const route = { sha256: "of-before", api: "a" };
  const capabilities = make(["w1", "w2"].map((worker_id) => ({ worker_id, route })));
  const { sha256 } = capabilities.give("w3", a);
  expect(published.at(-1)).toEqual([route, { sha256, api: "a" }]);
  capabilities.end("w1");
  capabilities.end("w2");
  expect(published.at(-1)).toEqual([{ sha256, api: "a" }]);
});
