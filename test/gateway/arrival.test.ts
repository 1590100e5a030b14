/** An incoming request: what authorizes it, and what it releases if its client leaves meanwhile. */
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BodyBudget } from "../../src/access/body-budget.ts";
import { PaceWatch } from "../../src/access/pace-watch.ts";
import type { Principal } from "../../src/access/permission.ts";
import { REQUEST_BYTES, SMALL_BODY_BYTES } from "../../src/contracts/limits/requests.ts";
import type { PredictionRequest } from "../../src/gateway/answers/prediction-request.ts";
import { Arrival } from "../../src/gateway/arrival.ts";
import type { Destination } from "../../src/gateway/destination.ts";
import { Authorization } from "../../src/gateway/door/authorization.ts";
import type { ApiPool } from "../../src/gateway/replicas/api-pool.ts";
import { ShadowCopies } from "../../src/gateway/replicas/shadow-copies.ts";
import { eventually } from "../harness/eventually.ts";

const BUDGET_BYTES = 4 * SMALL_BODY_BYTES;
/** Of three, with their heads. */
const COPIES_BYTES = 3 * (SMALL_BODY_BYTES + REQUEST_BYTES + 2 * 1024);
const HOLDER: Principal = { id: "k1", permissions: [{ scope: "predict", api: null }], rate: null };

describe("a request that arrives", () => {
  let server: Server;
  let bodies: BodyBudget;
  let pace: PaceWatch;
  let isKeyAsked = false;
  const submitted: PredictionRequest[] = [];
  const responses: ServerResponse[] = [];

  beforeEach(() => {
    bodies = new BodyBudget({ most: BUDGET_BYTES, forSmall: 0, smallBytes: 0 });
    pace = new PaceWatch();
  });
  afterEach(() => {
    isKeyAsked = false;
    submitted.length = 0;
    responses.length = 0;
    server.closeAllConnections();
    server.close();
  });

  async function listen(authorization: unknown, needsKey: boolean, shadow?: ApiPool): Promise<void> {
    const pool = {
      route: { name: "api", wants: [], pass_credentials: false },
      tally: { rejected: () => {}, answered: () => {} },
      refusal: () => undefined,
      abandon: () => {},
      submit: (prediction: PredictionRequest) => {
        submitted.push(prediction);
        prediction.beginStream({ format: "text" }, () => {});
        prediction.endStream();
      },
    };
    const destination = { address: { name: "api", endpoint: "/api", needs_key: needsKey }, pool, shadow };
    const asksForKey = () => isKeyAsked;
    const given = { authorization: authorization as Authorization, maxBodyBytes: BUDGET_BYTES };
    const copies = new ShadowCopies(COPIES_BYTES);
    const deps = { ...given, bodies, copies, pace, asksForKey, accessLog: undefined };
    server = createServer((incoming, response) => {
      responses.push(response);
      const exchange = { request: incoming, response, requestId: "r" };
      new Arrival(deps, destination as unknown as Destination, exchange).begin(undefined);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  }
  const post = (headers: Record<string, string | number>) => {
    const { port } = server.address() as AddressInfo;
    const sent = request({ port, host: "127.0.0.1", method: "POST", agent: false, headers });
    sent.on("error", () => {});
    return sent;
  };
  const ends = (headers: Record<string, string>) =>
    new Promise<void>((resolve, reject) => {
      const sent = post(headers).on("error", reject);
      sent.on("response", (answer: IncomingMessage) => answer.resume().on("end", resolve)).end("{}");
    });

  it.each([true, false])("ends with its key if the address needs one: %s", async (needsKey) => {
    let key = needsKey ? HOLDER : undefined;
    const findKey = () => key;
    const keysVersion = () => findKey;
    const options = {
      findKey,
      keysVersion,
      jwt: undefined,
      signatures: undefined,
      gateways: 1,
      onUsed: () => {},
    };
    await listen(new Authorization(options), needsKey);
    await ends({ authorization: "Bearer whatever" });
    expect(submitted[0]!.isStillOpen).toBe(true);
    key = undefined;
    expect(submitted[0]!.isStillOpen).toBe(!needsKey);
    isKeyAsked = true;
    expect(submitted[0]!.isStillOpen).toBe(false);
  });

  it("holds no more of its head than its credentials once it is answered", async () => {
    const options = { findKey: () => HOLDER, keysVersion: () => ({}), jwt: undefined, signatures: undefined };
    await listen(new Authorization({ ...options, gateways: 1, onUsed: () => {} }), true);
    const credentials = { authorization: "Bearer whatever", "x-api-key": "another" };
    await ends({ ...credentials, "content-type": "text/plain", "x-long": "long".repeat(600) });
    const { rawHeaders, headers } = responses[0]!.req;
    expect([rawHeaders, headers]).toEqual([[], credentials]);
    expect(submitted[0]!.head).toBeUndefined();
  });

  it("is refused if its key is revoked while its body arrives, even within one turn", async () => {
    let keys = new Map<string, Principal>();
    const revoked = keys;
    const findKey = () => (keys === revoked ? HOLDER : undefined);
    const options = {
      findKey,
      keysVersion: () => keys,
      jwt: undefined,
      signatures: undefined,
      gateways: 1,
      onUsed: () => {},
    };
    await listen(new Authorization(options), true);
    // Between head and body of one request, which arrive in one turn: the shortest possible time.
    server.on("request", () => {
      keys = new Map();
    });
    const sent = post({ authorization: "Bearer whatever" });
    const answer = new Promise<IncomingMessage>((resolve) => sent.on("response", resolve));
    sent.end("{}");
    expect((await answer).statusCode).toBe(401);
    expect(submitted).toEqual([]);
  });

  it("reserves nothing for a client that left while its token was verified", async () => {
    let verify: (principal: Principal) => void = () => {};
    const verified = new Promise<Principal>((resolve) => {
      verify = resolve;
    });
    const authorization = { isSigned: () => false, tokenPrincipal: () => verified, assert: () => HOLDER };
    await listen(authorization, true);
    const sent = post({ "content-length": BUDGET_BYTES });
    sent.write("{");
    await eventually("it is here", () => responses.length === 1);
    sent.destroy();
    await eventually("it has left", () => responses[0]!.destroyed);
    verify(HOLDER);
    await verified;
    expect(bodies.reserve(BUDGET_BYTES)).toBe(true);
  });

  it("is answered while a shadow hangs, and copies beyond the shadow's own budget are dropped", async () => {
    const copies: PredictionRequest[] = [];
    const dropped: string[] = [];
    await listen({}, false, {
      route: { name: "shadow", wants: [] },
      tally: { rejected: (code: string) => dropped.push(code) },
      submit: (copy: PredictionRequest) => copies.push(copy),
    } as unknown as ApiPool);
    const statuses = [];
    for (let n = 0; n < 10; n++) {
      const sent = post({ "content-length": SMALL_BODY_BYTES });
      sent.end(Buffer.alloc(SMALL_BODY_BYTES));
      statuses.push(await new Promise((resolve) => sent.on("response", (it) => resolve(it.statusCode))));
    }
    // Of three bodies that fit, the shadow leaves one to others.
    expect([statuses, copies.length, dropped.length]).toEqual([Array(10).fill(200), 2, 8]);
    expect(Buffer.concat(copies[0]!.body).length).toBe(SMALL_BODY_BYTES);
    for (const copy of copies) copy.abandon();
    await ends({});
    expect([copies.length, new Set(dropped)]).toEqual([3, new Set(["queue_full"])]);
    expect(bodies.reserve(BUDGET_BYTES)).toBe(true);
  });

  it("counts with its head until it is answered", async () => {
    const most = REQUEST_BYTES + 4 * 1024;
    bodies = new BodyBudget({ most, forSmall: 0, smallBytes: SMALL_BODY_BYTES });
    await listen({}, false);
    const statusOf = async (headers: Record<string, string>) => {
      const sent = post(headers);
      sent.end("{}");
      return new Promise((resolve) => sent.on("response", ({ statusCode }) => resolve(statusCode)));
    };
    expect(await statusOf({ "x-long": "x".repeat(5_000) })).toBe(503);
    expect(await statusOf({ "x-long": "x".repeat(1_000) })).toBe(200);
    expect(bodies.reserve(most)).toBe(true);
  });

  it("reserves nothing for a small body that never comes", async () => {
    await listen({}, false);
    for (let n = 0; n < 5; n++) post({ "content-length": SMALL_BODY_BYTES }).flushHeaders();
    await eventually("all heads are here", () => responses.length === 5);
    expect(bodies.reserve(BUDGET_BYTES)).toBe(true);
  });

  it("is charged to its sender once small bodies exceed their part of the budget", async () => {
    const smallBytes = SMALL_BODY_BYTES;
    const length = smallBytes - REQUEST_BYTES - 2 * 1024;
    bodies = new BodyBudget({ most: 4 * smallBytes, forSmall: smallBytes, smallBytes });
    await listen({}, false);
    const sent = post({ "content-length": length });
    sent.write("x");
    await eventually("it has begun", () => pace.size === 1);
    const read = () => responses[0]!.req.socket.bytesRead;
    const before = read();
    bodies.reserve(2 * smallBytes);
    sent.write("x".repeat(length - 2));
    await eventually("almost all of it is here", () => read() === before + length - 2);
    expect(bodies.reserve(smallBytes, { sender: "127.0.0.1", api: "api" })).toBe(false);
    expect(bodies.reserve(smallBytes, { sender: "another", api: "another" })).toBe(true);
  });

  it("is refused if its small body stalls, and continues if it does not", async () => {
    await listen({}, false);
    const sent = [0, 1].map(() => post({ "content-length": 100 }));
    const statuses = sent.map(
      (one) => new Promise((resolve) => one.on("response", ({ statusCode }) => resolve(statusCode))),
    );
    for (const one of sent) one.write("x".repeat(10));
    await eventually("both have begun", () => pace.size === 2);
    pace.check();
    const received = () => responses.reduce((sum, { req }) => sum + req.socket.bytesRead, 0);
    const before = received();
    sent[1]!.write("x".repeat(10));
    await eventually("more of one has come", () => received() === before + 10);
    expect(bodies.reserve(BUDGET_BYTES - 29)).toBe(false);
    pace.check();
    expect(await statuses[0]).toBe(408);
    sent[1]!.end("x".repeat(80));
    expect(await statuses[1]).toBe(200);
    expect([pace.size, bodies.reserve(BUDGET_BYTES)]).toEqual([0, true]);
  });
});

describe("a signed request", () => {
  it("stays authorized until its answer, even with an invalid key beside the signature", () => {
    const signatures = { credentials: new Map(), repeats: "reads" } as never;
    const findKey = () => undefined;
    const options = { findKey, keysVersion: () => findKey, jwt: undefined, gateways: 1, onUsed: () => {} };
    const headers = { authorization: "AWS4-HMAC-SHA256 Credential=x", "x-api-key": "junk" };
    const isStillOpen = (taken: typeof signatures | undefined) =>
      new Authorization({ ...options, signatures: taken }).isStillOpen({ headers } as never);
    expect([isStillOpen(signatures), isStillOpen(undefined)]).toEqual([true, false]);
  });
});
