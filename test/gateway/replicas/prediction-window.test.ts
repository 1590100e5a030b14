/** How much is sent in advance, for predictions that take shorter and longer. */
import { expect, it } from "vitest";
import { PREDICTION_WINDOW_MAX } from "../../../src/contracts/limits/predictions.ts";
import { PredictionWindow } from "../../../src/gateway/replicas/prediction-window.ts";

it.each([
  [0, PREDICTION_WINDOW_MAX, true],
  [500, 4, true],
  [3000, 2, false],
  [50_000, 1, false],
])("predictions of %d us allow %d requests in advance", (predictUs, size, isFast) => {
  const window = new PredictionWindow();
  expect([window.size, window.isFast]).toEqual([1, false]);
  for (let n = 0; n < 200; n++) window.learn(predictUs);
  expect([window.size, window.isFast]).toEqual([size, isFast]);
  window.shrink();
  expect(window.size).toBe(1);
});

it("the first prediction tells how long they take, later ones change it slowly", () => {
  const window = new PredictionWindow();
  const known = [window.predictMs];
  for (const predictUs of [8_000, 8_000, 16_000]) {
    window.learn(predictUs);
    known.push(window.predictMs);
  }
  expect(window.isFast).toBe(false);
  expect(known).toEqual([0, 8, 8, 9]);
});
