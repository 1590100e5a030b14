/** The head of a predictor's response, as it leaves a real server. */
import { createServer, get, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { writeHead } from "../../../src/gateway/answers/write-response.ts";

const OF_PREDICTOR = ["Set-Cookie", "a=1", "set-cookie", "b=2", "Vary", "Accept", "X-Own", "predictor"];

describe("the head of a response", () => {
  let server: Server;
  afterEach(() => server.close());

  /** The headers that the client gets: names in lower case, and values. */
  async function received(write: (response: ServerResponse) => void): Promise<[string, string][]> {
    server = createServer((_, response) => {
      write(response);
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const raw = await new Promise<string[]>((resolve) =>
      get({ port, host: "127.0.0.1", agent: false }, (answer) => resolve(answer.resume().rawHeaders)),
    );
    return raw.flatMap((name, at) => (at % 2 === 0 ? [[name.toLowerCase(), raw[at + 1]!]] : []));
  }
  const only = (headers: [string, string][], ...names: string[]) =>
    headers.filter(([name]) => names.includes(name)).map(([, value]) => value);

  it("has all headers that repeat, with and without headers of the gateway", async () => {
    for (const own of [[], [["x-quern-api", "a"]]] as const) {
      const headers = await received((response) => {
        for (const [name, value] of own) response.setHeader(name, value);
        writeHead(response, 201, OF_PREDICTOR);
      });
      expect(only(headers, "set-cookie")).toEqual(["a=1", "b=2"]);
      expect(only(headers, "x-quern-api")).toEqual(own.map(([, value]) => value));
      server.close();
    }
  });

  it("has Vary of both, and of other names the predictor's only", async () => {
    const headers = await received((response) => {
      response.setHeader("vary", "Origin").setHeader("x-own", "gateway");
      writeHead(response, 200, OF_PREDICTOR);
    });
    expect(only(headers, "vary")).toEqual(["Origin", "Accept"]);
    expect(only(headers, "x-own")).toEqual(["predictor"]);
  });

  it("sets no header if one cannot be sent", async () => {
    const headers = await received((response) => {
      response.setHeader("vary", "Origin");
      expect(() => writeHead(response, 200, ["content-length", "7", "x-bad", "a\nb"])).toThrow("Invalid");
      response.writeHead(500, { "content-length": 0 });
    });
    expect(only(headers, "content-length", "vary")).toEqual(["Origin", "0"]);
  });
});
