/** Data of a request or a configuration that is read once, however often it is used. */
import { decode } from "@msgpack/msgpack";
import { Hono } from "hono";
import { describe, expect, it } from "vitest";
import type { Keys } from "../../src/access/keys.ts";
import { encodeForwarded, FORWARDED_HEADER } from "../../src/contracts/forwarded.ts";
import { SecretNames } from "../../src/contracts/secrets.ts";
import { ShownConfig } from "../../src/control/answers/shown-config.ts";
import { forwarded } from "../../src/control/requests/forwarded.ts";

const noAdmin = { find: () => undefined } as unknown as Keys;

describe("a request", () => {
  it("has its header from the gateway decoded once, and shared with no other request", async () => {
    const app = new Hono().get("/:a", (c) => {
      expect(forwarded(c)).toBe(forwarded(c));
      return c.text(forwarded(c).baseUrl);
    });
    const ask = async (baseUrl: string) => {
      const said = encodeForwarded({ baseUrl, listener: "main", isLocal: false });
      return (await app.request("/x", { headers: { [FORWARDED_HEADER]: said } })).text();
    };
    expect([await ask("http://one"), await ask("http://two")]).toEqual(["http://one", "http://two"]);
  });
});

describe("the configuration of an API version", () => {
  it("is redacted once for callers without access to secrets, in a cache of bounded size", async () => {
    const shown = new ShownConfig(noAdmin, new SecretNames([]));
    let reads = 0;
    const spec = {
      get name() {
        reads++;
        return "echo";
      },
      predictor: { config: { password: "p" }, env: { A: "1" } },
    };
    const app = new Hono().get("/:id", (c) =>
      c.json(
        decode(
          Buffer.from(
            shown.spec(c, c.req.param("id"), () => spec),
            "base64",
          ),
        ) as object,
      ),
    );
    const ask = async (id: string) => (await app.request(`/${id}`)).json();
    const hidden = { name: "echo", predictor: { config: { password: "***" }, env: { A: "***" } } };
    expect([await ask("v0"), await ask("v0"), reads]).toEqual([hidden, hidden, 1]);
    for (let i = 1; i <= 200; i++) await ask(`v${i}`);
    expect([await ask("v200"), reads]).toEqual([hidden, 201]);
    expect([await ask("v0"), reads]).toEqual([hidden, 202]);
  });
});
