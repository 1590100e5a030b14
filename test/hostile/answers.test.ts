/** Predictors that return what HTTP does not allow: the next answer on the connection must stay intact. */
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TestServer } from "../harness/server.ts";

const PREDICTOR = `
class Response:
    def __init__(self, status, headers, body):
        self.status_code, self.headers, self.body = status, headers, body

class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        status = float(payload["float"]) if "float" in payload else payload.get("status", 200)
        headers = [tuple(pair) for pair in payload.get("headers", [])]
        if payload.get("form") == "long": return Response(status, headers, "b" * 400000)
        if payload.get("form") == "empty": return Response(status, headers, None)
        if payload.get("form") == "pieces": return Response(status, headers, (piece for piece in payload["pieces"]))
        if payload.get("form") == "later": return Response(status, headers, self.late(payload["pieces"]))
        return Response(status, headers, payload.get("body", "body"))
    def late(self, pieces):
        yield from pieces
        raise ValueError("after the last piece")
`;

const server = new TestServer();
let gateway = 0;
beforeAll(async () => {
  await server.start();
  server.deploy({ "quern.yaml": "- name: odd\n  predictor: {path: p.py}\n", "p.py": PREDICTOR });
  gateway = server.child("gateway");
});
afterAll(() => server.stop());

/** All bytes that come back for a prediction and a probe behind it on one connection. */
function exchange(payload: unknown): Promise<string> {
  const body = JSON.stringify(payload);
  const prediction = `POST /odd HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  const probe = "GET /-/livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  return new Promise((resolve, reject) => {
    let said = "";
    const socket = connect(Number(new URL(server.baseUrl).port), "127.0.0.1");
    socket.on("data", (bytes) => (said += bytes.toString("latin1")));
    socket.on("close", () => resolve(said)).on("error", reject);
    socket.write(prediction + probe);
  });
}

interface Read {
  status: number;
  headers: string[];
  body: string;
}

/** Reads answers like a strict client (RFC 9112, section 6.3); throws if the bytes are not HTTP. */
function readAnswers(bytes: string): Read[] {
  const answers: Read[] = [];
  for (let rest = bytes; rest !== ""; ) {
    const end = rest.indexOf("\r\n\r\n");
    const [line, ...headers] = rest.slice(0, end).split("\r\n");
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(line!)?.[1]);
    if (end < 0 || Number.isNaN(status)) throw new Error(`no answer: ${JSON.stringify(rest.slice(0, 200))}`);
    const values = (name: string) =>
      headers
        .filter((header) => header.toLowerCase().startsWith(`${name}:`))
        .map((h) => h.split(":")[1]!.trim());
    const [lengths, codings] = [values("content-length"), values("transfer-encoding")];
    expect(lengths.length + codings.length).toBeLessThanOrEqual(1);
    rest = rest.slice(end + 4);
    const isBare = status === 204 || status === 304;
    if (isBare) expect([...lengths, ...codings]).toEqual([]);
    const [body, left] = isBare
      ? ["", rest]
      : codings.length > 0
        ? readChunks(rest)
        : [rest.slice(0, Number(lengths[0])), rest.slice(Number(lengths[0]))];
    answers.push({ status, headers, body });
    rest = left;
  }
  return answers;
}

function readChunks(bytes: string): [string, string] {
  let body = "";
  for (let rest = bytes; ; ) {
    const size = /^([\da-f]+)\r\n/.exec(rest);
    if (size === null) return [`${body}(cut)`, ""];
    const bytesMany = Number.parseInt(size[1]!, 16);
    body += rest.slice(size[0].length, size[0].length + bytesMany);
    rest = rest.slice(size[0].length + bytesMany + 2);
    if (bytesMany === 0) return [body, rest];
  }
}

const split = "x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
const FORMS = [{}, { form: "long" }, { form: "empty" }, { form: "pieces", pieces: ["a", "b"] }];

describe.each(FORMS)("an answer %j", (form) => {
  it.each<[string, object]>([
    ["a header that contains a response", { headers: [["x-a", split]] }],
    ["a header name that contains a response", { headers: [[`x-a: ${split}`, "b"]] }],
    ["an invalid header name", { headers: [["x a", "b"]] }],
    ["an empty name", { headers: [["", "b"]] }],
    ["a zero byte", { headers: [["x-a", "\u0000"]] }],
    ["a bare line feed", { headers: [["x-a", "1\n b"]] }],
    ["a character beyond Latin-1", { headers: [["x-a", "…"]] }],
    ["half a character", { headers: [["x-a", "\ud800"]] }],
    [
      "two lengths",
      {
        headers: [
          ["content-length", "1"],
          ["Content-Length", "3"],
        ],
      },
    ],
    ["an invalid length", { headers: [["content-length", "-1"]] }],
    ["a length in another base", { headers: [["content-length", "0x10"]] }],
    ["a list of lengths", { headers: [["content-length", "4, 4"]] }],
    [
      "headers without end",
      { headers: Array.from({ length: 3000 }, (_, at) => [`x-${at}`, "y".repeat(20)]) },
    ],
    ["a status of 1xx", { status: 100 }],
    ["101", { status: 101 }],
    ["103", { status: 103 }],
    ["199", { status: 199 }],
    ["a status of two digits", { status: 42 }],
    ["600", { status: 600 }],
    ["a status with a fraction", { float: 200.5 }],
    ["no status", { status: null }],
    ["a status that contains a response", { status: `200 OK\r\n${split}` }],
    ["true", { status: true }],
    ["a negative status", { status: -200 }],
  ])("with %s gives 500 to its own request", async (_, head) => {
    const answers = readAnswers(await exchange({ ...form, ...head }));
    expect(answers.map(({ status }) => status)).toEqual([500, 200]);
    expect(JSON.parse(answers[0]!.body)).toMatchObject({ code: expect.stringMatching(/^prediction_/) });
    expect(answers[1]!.body).toBe("ok\n");
  });

  it.each<[string, object, number]>([
    [
      "hop-by-hop headers",
      {
        headers: [
          ["Connection", "close"],
          ["Keep-Alive", "x"],
          ["Upgrade", "h2c"],
          ["Trailer", "x"],
        ],
      },
      200,
    ],
    ["a Transfer-Encoding", { headers: [["Transfer-Encoding", "chunked"]] }, 200],
    ["a disguised Transfer-Encoding", { headers: [["transfer-ENCODING", "gzip, chunked"]] }, 200],
    ["204", { status: 204 }, 204],
    ["304", { status: 304, headers: [["content-type", "text/plain"]] }, 304],
    ["205", { status: 205 }, 205],
    ["its own request id", { headers: [["X-Request-Id", "forged"]] }, 200],
    ["its own date", { headers: [["Date", "never"]] }, 200],
    [
      "the gateway's own names",
      {
        headers: [
          ["x-quern-forwarded", "e30"],
          ["__proto__", "x"],
          ["constructor", "y"],
        ],
      },
      200,
    ],
  ])("with %s is complete, and so is the next one", async (_, head, status) => {
    const answers = readAnswers(await exchange({ ...form, ...head }));
    expect(answers.map((answer) => answer.status)).toEqual([status, 200]);
    expect(answers[1]!.body).toBe("ok\n");
    const ids = answers[0]!.headers.filter((header) => /^x-request-id:/i.test(header));
    expect(ids).toEqual([expect.not.stringContaining("forged")]);
    const dates = answers[0]!.headers.filter((header) => /^date:/i.test(header));
    expect(dates).toEqual([expect.stringContaining("GMT")]);
  });
});

describe("an answer in pieces", () => {
  const pieces = ["abc", "def"];
  it.each([
    ["of the announced length", "6", [200, 200], "abcdef"],
    ["longer than announced", "4", [200], undefined],
    ["shorter than announced", "9", [200], undefined],
    ["with content and a length of 0", "0", [200], undefined],
  ])("%s never runs into the next", async (_, length, statuses, body) => {
    const bytes = await exchange({ form: "pieces", pieces, headers: [["content-length", length]] });
    const head = bytes.indexOf("\r\n\r\n") + 4;
    // If it cannot be complete, the connection ends within the announced length.
    if (body === undefined) expect(bytes.length - head).toBeLessThanOrEqual(Number(length));
    else expect(readAnswers(bytes).map(({ status }) => status)).toEqual(statuses);
  });

  it.each([204, 304])("has no content with status %i, whatever its length", async (status) => {
    const answers = readAnswers(
      await exchange({ form: "pieces", pieces, status, headers: [["content-length", "6"]] }),
    );
    expect(answers.map((answer) => answer.status)).toEqual([status, 200]);
  });

  it("is cut off if it fails after its pieces, so that no client takes it for complete", async () => {
    const bytes = await exchange({ form: "later", pieces });
    expect(bytes).toContain("abc");
    expect(bytes).not.toContain("0\r\n\r\n");
    expect(bytes).not.toContain("ok\n");
  });
});

it("none of these answers ended the gateway or made a replica break the protocol", () => {
  expect(server.child("gateway")).toBe(gateway);
  expect(server.stderr).not.toMatch(/process_ended|broke the protocol/);
});
