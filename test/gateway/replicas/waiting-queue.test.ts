/** The queue of requests without a replica: its order, also after many have left, and after some came back. */
import { expect, it } from "vitest";
import { PredictionRequest } from "../../../src/gateway/answers/prediction-request.ts";
import { WaitingQueue } from "../../../src/gateway/replicas/waiting-queue.ts";

const request = (id: number) =>
  new PredictionRequest(
    undefined,
    {
      ...{ startedMs: 0, requestId: String(id), parts: [] },
      ...{ bodyDone: () => {}, isStillOpen: () => true },
    },
    undefined,
    false,
  );
const ids = (queue: WaitingQueue) => queue.list().map(({ requestId }) => Number(requestId));

it("the queue keeps the order of arrival, with returned requests first", () => {
  const queue = new WaitingQueue();
  for (let id = 0; id < 3000; id++) queue.push(request(id));
  for (let id = 0; id < 2000; id++) {
    expect(queue.first?.requestId).toBe(String(id));
    queue.shift();
    if (id % 100 === 0) queue.compact();
  }
  queue.putBack([request(7), request(8)]);
  expect(ids(queue).slice(0, 4)).toEqual([7, 8, 2000, 2001]);
  expect(queue.size).toBe(1002);
});

it("the queue has no first request once it is empty", () => {
  const queue = new WaitingQueue();
  queue.push(request(1));
  queue.shift();
  queue.compact();
  expect([queue.first, queue.size, ids(queue)]).toEqual([undefined, 0, []]);
});
