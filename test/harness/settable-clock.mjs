/**
 * A wall clock that a test can set, for real processes: `node --import` of this file adds what the file named by FAKE_CLOCK
 * holds (milliseconds) to `Date`. The monotonic clock does not change, as when the machine's clock is set.
 */
import { readFileSync } from "node:fs";

const RealDate = Date;
const file = process.env.FAKE_CLOCK;
let readMs = Number.NEGATIVE_INFINITY;
let offsetMs = 0;

function now() {
  if (performance.now() - readMs > 10) {
    readMs = performance.now();
    try {
      offsetMs = Number(readFileSync(file, "utf8"));
    } catch {
      // Not set yet.
    }
  }
  return RealDate.now() + offsetMs;
}

globalThis.Date = class FakeDate extends RealDate {
  constructor(...given) {
    super(...(given.length === 0 ? [now()] : given));
  }

  static now() {
    return now();
  }
};
