/** The `X-Request-Id` of a response, in the log of its API and in predict(). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { TestServer } from "../../harness/server.ts";

const FAILS = `
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        if payload == "fail": raise ValueError("as asked")
        if payload == "stream": return self.pieces()
        if payload == "unclosed": return self.endless()
        return payload
    def endless(self):
        try:
            while True: yield 1
        finally:
            raise ValueError("not closed")
    def pieces(self):
        yield 1
        raise ValueError("inside")
    def post_predict(self, payload):
        if payload == "later": raise ValueError("later")
`;
const HEADERS = `
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload, headers): return [headers["X-Request-Id"], headers.getlist("x-request-id")]
`;

describe("request ids", () => {
  const server = new TestServer();
  beforeAll(async () => {
    await server.start();
    server.deploy({
      "quern.yaml": `
- name: fails
  predictor: {path: fails.py}
- name: headers
  predictor: {path: headers.py}
`,
      "fails.py": FAILS,
      "headers.py": HEADERS,
    });
  });
  afterAll(() => server.stop());

  const log = async (api: string, text: string) => {
    const read = () => server.cli(["logs", api]).out;
    await eventually(`the log has ${text}`, () => read().includes(text), 60_000, read);
    return read();
  };
  const ask = async (api: string, payload: string, id?: string) => {
    const response = await server.post(
      `/${api}`,
      JSON.stringify(payload),
      id === undefined ? {} : { "x-request-id": id },
    );
    return {
      id: response.headers.get("x-request-id")!,
      text: await response.text().catch(() => "broken off"),
    };
  };

  it("are in the log, with the traceback of each", async () => {
    const { id } = await ask("fails", "fail");
    expect(await log("fails", `request ${id} failed`)).toMatch(
      new RegExp(`request ${id} failed\\n.*Traceback[^]*ValueError: as asked`),
    );
    await ask("fails", "stream", "my-stream");
    await log("fails", "the stream of request my-stream failed");
    const endless = await server.post("/fails", JSON.stringify("unclosed"), {
      "x-request-id": "my-generator",
    });
    await endless.body!.cancel();
    await log("fails", "the generator of request my-generator could not be closed");
    await ask("fails", "later", "my-later");
    await log("fails", "post_predict of request my-later failed");
  });

  it("are given to predict() among the headers", async () => {
    const own = await ask("headers", "x");
    expect(JSON.parse(own.text)).toEqual([own.id, [own.id]]);
    expect(JSON.parse((await ask("headers", "x", "mine")).text)).toEqual(["mine", ["mine"]]);
  });
});
