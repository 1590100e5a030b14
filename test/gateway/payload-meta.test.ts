/** The metadata that workers get beside a payload, for heads as Node parses them. */
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RequestHead } from "../../src/gateway/payload-meta.ts";

const ALL = { wants: ["headers", "query_params"], pass_credentials: true };

describe("the metadata of a request", () => {
  let server: Server;
  let arrived: IncomingMessage;

  beforeAll(async () => {
    server = createServer((incoming, response) => {
      arrived = incoming;
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterAll(() => server.close());

  async function head(path: string, headers: string[]): Promise<RequestHead> {
    const { port } = server.address() as AddressInfo;
    await new Promise<void>((resolve, reject) => {
      const options = {
        port,
        host: "127.0.0.1",
        path,
        headers: ["host", "here", ...headers],
        method: "POST",
      };
      request(options, (response) => response.resume().on("end", resolve))
        .on("error", reject)
        .end();
    });
    const made = new RequestHead(arrived, "id");
    // As the gateway does, to hold less.
    arrived.rawHeaders = [];
    arrived.headers = {};
    return made;
  }
  const meta = (made: RequestHead, wishes = ALL) => JSON.parse(made.metaFor(wishes) ?? "null");

  it("is made for what the predictor declares when the request is sent to it", async () => {
    const made = await head("/echo?tenant=a&tenant=b#c", ["content-type", "application/json", "x-a", "1"]);
    expect(made.metaFor({ wants: [], pass_credentials: false })).toBeUndefined();
    expect(meta(made, { wants: ["query_params"], pass_credentials: false })).toEqual({
      query_params: [
        ["tenant", "a"],
        ["tenant", "b"],
      ],
    });
    expect(meta(made)).toMatchObject({ headers: { "x-a": "1", "x-request-id": "id" } });
  });

  it("names a content type that is not JSON", async () => {
    const made = await head("/echo", ["content-type", "text/plain"]);
    expect(meta(made, { wants: [], pass_credentials: false })).toEqual({ content_type: "text/plain" });
  });

  it("has credentials only if the API passes them", async () => {
    const made = await head("/echo?api_key=k&b=1", ["authorization", "Bearer k", "x-a", "1"]);
    const without = meta(made, { ...ALL, pass_credentials: false });
    expect(without.headers).not.toHaveProperty("authorization");
    expect(without.query_params).toEqual([["b", "1"]]);
    expect(meta(made).headers).toMatchObject({ authorization: "Bearer k", "x-a": "1" });
    expect(meta(made).query_params).toHaveLength(2);
  });

  it.each([1, 100])("has the values of repeated headers, also beside %d others", async (others) => {
    const many = Array.from({ length: others }, (_, index) => [`x-${index}`, "v"]).flat();
    const made = await head("/echo", ["X-Twice", "1", ...many, "x-twice", "2"]);
    const { headers, repeated_headers } = meta(made);
    expect(headers).toMatchObject({ "x-twice": "1, 2", "x-0": "v", [`x-${others - 1}`]: "v" });
    expect(repeated_headers).toEqual({ "x-twice": ["1", "2"] });
  });
});
