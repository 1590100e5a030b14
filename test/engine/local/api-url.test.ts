/** QUERN_API_URL beside the proxies of an environment. */
import { expect, it } from "vitest";
import { withApiUrl } from "../../../src/engine/local/api-url.ts";

const URL = "http://127.0.0.1:1/quern_x";

it("user code reaches the API URL without the proxy of the environment", () => {
  expect(withApiUrl({ A: "1" }, URL)).toEqual({ A: "1", QUERN_API_URL: URL });
  expect(withApiUrl({ A: "1" }, undefined)).toEqual({ A: "1" });
  const proxied = (more: Record<string, string>) => withApiUrl({ HTTP_PROXY: "http://p", ...more }, URL);
  expect(proxied({})).toMatchObject({ no_proxy: "127.0.0.1", NO_PROXY: "127.0.0.1" });
  expect(proxied({ NO_PROXY: "a.b" })).toMatchObject({
    no_proxy: "a.b,127.0.0.1",
    NO_PROXY: "a.b,127.0.0.1",
  });
  expect(proxied({ no_proxy: "c", NO_PROXY: "a" })).toMatchObject({ no_proxy: "c,127.0.0.1" });
  expect(proxied({ no_proxy: "*" })).toEqual({ HTTP_PROXY: "http://p", no_proxy: "*", QUERN_API_URL: URL });
});

it("the API URL is always Quern's, even if the project's .env sets it", () => {
  expect(withApiUrl({ QUERN_API_URL: "http://mine" }, URL)).toEqual({ QUERN_API_URL: URL });
});
