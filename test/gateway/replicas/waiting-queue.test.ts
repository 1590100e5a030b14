/** The requests without a replica: their order, also after many have left, and which get none because it is too late. */
import { describe, expect, it } from "vitest";
import { PredictionRequest } from "../../../src/gateway/answers/prediction-request.ts";
import { WaitingQueue } from "../../../src/gateway/replicas/waiting-queue.ts";
import { WaitingRequests } from "../../../src/gateway/replicas/waiting-requests.ts";

function request(id: number, deadlineMs = 1000): PredictionRequest {
  const arrived = {
    ...{ startedMs: 0, requestId: String(id), parts: [] },
    ...{ bodyDone: () => {}, isStillOpen: () => true },
  };
  const made = new PredictionRequest(undefined, arrived, undefined, false);
  made.deadlineMs = deadlineMs;
  return made;
}
const idOf = (prediction: PredictionRequest | undefined) => prediction && Number(prediction.requestId);
const ids = (requests: { list(): PredictionRequest[] }) => requests.list().map(idOf);

describe("the queue", () => {
  it("keeps the order of arrival, with returned requests first", () => {
    const queue = new WaitingQueue();
    for (let id = 0; id < 3000; id++) queue.push(request(id));
    for (let id = 0; id < 2000; id++) expect(idOf(queue.take())).toBe(id);
    queue.push(request(3000));
    queue.putBack([request(7), request(8)]);
    expect(ids(queue).slice(0, 4)).toEqual([7, 8, 2000, 2001]);
    expect(queue.size).toBe(1003);
  });

  it("has no first request once it is empty", () => {
    const queue = new WaitingQueue();
    queue.push(request(1));
    queue.take();
    expect([queue.first, queue.take(), queue.size, ids(queue)]).toEqual([undefined, undefined, 0, []]);
  });

  it("drops answered requests from its front, although nobody takes any", () => {
    const queue = new WaitingQueue();
    for (let id = 0; id < 5000; id++) {
      const next = request(id);
      queue.push(next);
      if (id !== 4990) next.isAnswered = true;
    }
    expect([queue.size < 2100, idOf(queue.first), queue.size]).toEqual([true, 4990, 10]);
  });
});

describe("requests that wait", () => {
  const waiting = (...deadlines: number[]) => {
    const requests = new WaitingRequests();
    for (const [id, deadlineMs] of deadlines.entries()) requests.push(request(id, deadlineMs));
    return requests;
  };

  it("are passed over if a prediction would end after their deadline", () => {
    const requests = waiting(10, 20, 30);
    expect(idOf(requests.take(25))).toBe(2);
    expect(requests.size).toBe(2);
  });

  it("get a replica that nobody else wants, however late it is, in the order of arrival", () => {
    const requests = waiting(10, 20, 30);
    expect([1, 2, 3, 4].map(() => idOf(requests.take(100)))).toEqual([0, 1, 2, undefined]);
    expect(requests.isEmpty).toBe(true);
  });

  it("are not held once they are answered", () => {
    const requests = waiting(10, 20, 30);
    requests.take(25);
    for (const late of requests.list()) late.isAnswered = true;
    expect([requests.isEmpty, requests.take(25), requests.size]).toEqual([true, undefined, 0]);
  });
});
