/** Batches of parsed lines for the peers that are written in JavaScript, a thousand at a time. */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";

const BATCHES_AT_ONCE = 1000;

/** The first `count` batches of `size` lines each. */
export async function* readBatches(path, size, count) {
  let batch = [];
  let batches = [];
  let made = 0;
  for await (const line of createInterface({ input: createReadStream(path) })) {
    batch.push(JSON.parse(line));
    if (batch.length < size) continue;
    batches.push(batch);
    batch = [];
    if (++made === count || batches.length === BATCHES_AT_ONCE) {
      yield batches;
      batches = [];
    }
    if (made === count) return;
  }
}
