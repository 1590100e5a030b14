/** Hashes of bodies that callers send: how much of them one turn of the event loop makes. */
import { Hash } from "node:crypto";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { BodyBudget } from "../../src/access/body-budget.ts";
import { PaceWatch } from "../../src/access/pace-watch.ts";
import type { Principal } from "../../src/access/permission.ts";
import { submissionKey } from "../../src/batch/submit/idempotency.ts";
import { HASHED_EACH_TURN_BYTES } from "../../src/contracts/limits/event-loop.ts";
import type { PredictionRequest } from "../../src/gateway/answers/prediction-request.ts";
import { Arrival } from "../../src/gateway/arrival.ts";
import { ControlPlane, type ControlPlaneDeps } from "../../src/gateway/control-plane.ts";
import type { Destination } from "../../src/gateway/destination.ts";
import { ShadowCopies } from "../../src/gateway/replicas/shadow-copies.ts";
import type { Visit } from "../../src/gateway/visit.ts";
import { authorizationOf, signedHeaders } from "../harness/aws-signature.ts";
import { eventually } from "../harness/eventually.ts";

const MIB = 1024 * 1024;
const BODY = "b".repeat(8 * MIB);
/** What one read of a socket returns, twice. */
const READ_BYTES = 128 * 1024;
const SIGNER: Principal = { id: "aws:AKID", permissions: [{ scope: "admin", api: null }], rate: null };

/** The sizes of everything that is hashed from now on. */
function hashed(): number[] {
  const sizes: number[] = [];
  const { update } = Hash.prototype;
  vi.spyOn(Hash.prototype, "update").mockImplementation(function (
    this: Hash,
    data: string | ArrayBufferView,
  ) {
    sizes.push(typeof data === "string" ? data.length : data.byteLength);
    return (update as (data: unknown) => Hash).call(this, data);
  } as typeof update);
  return sizes;
}

const sum = (sizes: readonly number[]) => sizes.reduce((all, size) => all + size, 0);

afterEach(() => {
  vi.restoreAllMocks();
});

describe("the body of a signed request", () => {
  let server: Server;

  beforeEach(async () => {
    const authorization = authorizationOf(SIGNER);
    const bodies = new BodyBudget({ most: 64 * MIB, forSmall: 0, smallBytes: 0 });
    const clients = { urls: () => ({ baseUrl: "" }), isLocal: () => true };
    // The caller is known by then: the controller is away.
    const controller = { connect: async () => undefined };
    const plane = new ControlPlane({
      authorization,
      bodies,
      clients,
      controller,
    } as unknown as ControlPlaneDeps);
    const submit = (prediction: PredictionRequest) => {
      prediction.beginStream({ format: "text" }, () => {});
      prediction.endStream();
    };
    const pool = {
      route: { name: "api", wants: [], pass_credentials: false },
      tally: { rejected: () => {}, answered: () => {} },
      refusal: () => undefined,
      abandon: () => {},
      submit,
    };
    const address = { name: "api", endpoint: "/api", needs_key: true };
    const arrivals = {
      authorization,
      bodies,
      pace: new PaceWatch(),
      asksForKey: () => true,
      accessLog: undefined,
    };
    const deps = { ...arrivals, maxBodyBytes: 64 * MIB, copies: new ShadowCopies(0) };
    const destination = { address, pool, shadow: undefined } as unknown as Destination;
    server = createServer((incoming, response) => {
      const exchange = { request: incoming, response, requestId: "r" };
      if (incoming.url === "/api") new Arrival(deps, destination, exchange).begin(undefined);
      else plane.take({ ...exchange, entrance: { name: "main" } } as unknown as Visit);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  it.each([
    ["/api", 200],
    ["/jobs", 503],
  ])("is hashed while it arrives, at %s: only its last part is left at its end", async (path, status) => {
    const { port } = server.address() as AddressInfo;
    const signed = {
      ...{ accessKeyId: "AKID", secret: "s3cret", path, body: BODY },
      ...{ headers: { host: `127.0.0.1:${port}` }, signedHeaders: ["host", "x-amz-date"] },
    };
    const statusOf = async (headers: Record<string, string>, meanwhile?: () => Promise<void>) => {
      const sent = request({
        ...{ port, host: "127.0.0.1", method: "POST", path, agent: false },
        headers: { ...headers, "content-length": BODY.length },
      });
      const answer = new Promise((resolve, reject) => {
        sent.on("error", reject).on("response", (it) => resolve(it.resume().statusCode));
      });
      sent.write(BODY.slice(1));
      await meanwhile?.();
      sent.end(BODY.slice(0, 1));
      return answer;
    };
    const [right, wrong] = [signedHeaders(signed), signedHeaders({ ...signed, secret: "another" })];
    const sizes = hashed();
    const arrived = () => eventually("all but a byte is hashed", () => sum(sizes) >= BODY.length - 1);
    expect(await statusOf(right, arrived)).toBe(status);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(READ_BYTES);
    expect(await statusOf(wrong)).toBe(401);
  });
});

describe("submissions with an Idempotency-Key", () => {
  it("are hashed a piece in each turn, however many came at once", async () => {
    const sizes = hashed();
    const turns: number[] = [];
    let isOver = false;
    const count = () => {
      turns.push(sum(sizes.splice(0)));
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const bodies = ["a", "b", "b"].map((byte) => Buffer.alloc(5 * MIB + 1, byte));
    const keys = await Promise.all(bodies.map((body) => submissionKey("api", "key", body)));
    isOver = true;
    count();
    expect(Math.max(...turns)).toBeLessThanOrEqual(HASHED_EACH_TURN_BYTES);
    expect(sum(turns)).toBe(3 * (5 * MIB + 1));
    expect(keys[1]).toEqual(keys[2]);
    expect(keys[0]!.body_sha256).not.toBe(keys[1]!.body_sha256);
  });
});
