/** The ids of requests at a replica. */
import { expect, it } from "vitest";
import { PredictionRequest } from "../../../src/gateway/answers/prediction-request.ts";
import { SentRequests } from "../../../src/gateway/replicas/sent-requests.ts";
import { MESSAGE } from "../../../src/protocol/messages.ts";

const MANY = 20_000;

function request(): PredictionRequest {
  const arrived = {
    ...{ startedMs: 0, requestId: "r", parts: [] },
    ...{ bodyDone: () => {}, isStillOpen: () => true },
  };
  return new PredictionRequest(undefined, arrived, undefined, false);
}

it("a request has its id at the replica to which it was last sent, until the replica is done with it", () => {
  const [one, other] = [new SentRequests(), new SentRequests()];
  const [first, second] = [request(), request()];
  expect(one.idOf(first)).toBeUndefined();
  expect([one.add(first), one.add(second), one.idOf(first), one.idOf(second)]).toEqual([1, 2, 1, 2]);
  one.replied(MESSAGE.STREAM, 1);
  expect([one.idOf(first), other.idOf(first)]).toEqual([1, undefined]);
  one.replied(MESSAGE.END, 1);
  one.replied(MESSAGE.BUSY, 2);
  expect([one.idOf(first), one.idOf(second)]).toEqual([undefined, undefined]);
  expect([other.add(second), other.idOf(second), one.idOf(second)]).toEqual([1, 1, undefined]);
  expect(other.lose(0, undefined)).toEqual({ begun: [], notBegun: [second] });
  expect(other.idOf(second)).toBeUndefined();
});

it("no request is searched for: the clients of thousands may leave at once", () => {
  const sent = new SentRequests();
  const requests = Array.from({ length: MANY }, request);
  for (const each of requests) sent.replied(MESSAGE.STREAM, sent.add(each));
  const before = process.cpuUsage();
  const ids = requests.map((each) => sent.idOf(each));
  const { user, system } = process.cpuUsage(before);
  expect([ids[0], ids.at(-1)]).toEqual([1, MANY]);
  // A search took 1.5 s; now it is 2 ms.
  expect((user + system) / 1000).toBeLessThan(300);
});
