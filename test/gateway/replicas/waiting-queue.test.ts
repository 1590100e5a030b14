/** The requests without a replica: their order, also after many have left, and which get none because it is too late. */
import { describe, expect, it, vi } from "vitest";
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
/** Also those that are answered. */
const held = (queue: WaitingQueue) => (queue as unknown as { requests: unknown[] }).requests.length;
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

  it.each([0, 4990])("drops answered requests, although nobody takes any and request %d waits", (waits) => {
    const queue = new WaitingQueue();
    let most = 0;
    for (let id = 0; id < 5000; id++) {
      const next = request(id);
      queue.push(next);
      most = Math.max(most, held(queue));
      if (id !== waits) next.isAnswered = true;
    }
    expect([most <= 1024, idOf(queue.first), queue.size]).toEqual([true, waits, 1]);
  });

  it("is searched for answered requests only if half of them may have left", () => {
    const queue = new WaitingQueue();
    const requests = Array.from({ length: 3000 }, (_, id) => request(id));
    for (const next of requests) queue.push(next);
    const list = vi.spyOn(queue, "list");
    for (let id = 0; id < 1000; id++) queue.push(request(id));
    expect(list.mock.calls.length).toBeLessThanOrEqual(1);
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
