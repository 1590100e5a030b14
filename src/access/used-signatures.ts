/**
 * Remembers used signatures, so that each is accepted once (docs/decisions/0019-repeated-signatures.md). A signature is
 * remembered for as long as its date is accepted. Each access key has a share of the memory. If a key signs more, its
 * oldest signatures are forgotten, and nothing as old is accepted from it any more. So no repeat gets through, and no
 * key shortens another key's window.
 */
import { REPEATED_SIGNATURE_MS, SIGNATURES_MAX } from "../contracts/limits/authorization.ts";

/** Enough of a signature's 32 bytes to distinguish it from all others. */
const KEPT_BYTES = 10;
const SECOND_MS = 1_000;
/** How long after its date a signature is remembered: as long as the date is accepted. */
const KEPT_MS = 15 * 60_000;

export type Verdict = "new" | "repeated" | "used" | "too_old";

interface OfOneKey {
  /** By the second of their date: each signature, with the time of its first use. */
  seconds: Map<number, Map<string, number>>;
  count: number;
  /** Signatures of this second or earlier are refused. */
  floor: number;
  prunedMs: number;
}

export class UsedSignatures {
  private readonly keys = new Map<string, OfOneKey>();
  private readonly mostOfOneKey: number;

  constructor(keys: number, most = SIGNATURES_MAX) {
    this.mostOfOneKey = Math.max(1, Math.floor(most / Math.max(1, keys)));
  }

  /** Remembers a verified signature. `repeated`: its first use was a moment ago. */
  use(
    { accessKeyId, signature, dateMs }: { accessKeyId: string; signature: string; dateMs: number },
    nowMs: number,
  ): Verdict {
    const key = this.ofKey(accessKeyId);
    if (nowMs - key.prunedMs >= SECOND_MS) forgetOver(key, nowMs);
    const second = dateMs / SECOND_MS;
    if (second <= key.floor) return "too_old";
    // A new string: a part of the header's text would keep the whole text in memory.
    const text = Buffer.from(signature, "hex").toString("latin1", 0, KEPT_BYTES);
    const usedMs = key.seconds.get(second)?.get(text);
    if (usedMs !== undefined) return nowMs - usedMs <= REPEATED_SIGNATURE_MS ? "repeated" : "used";
    if (key.count >= this.mostOfOneKey) forgetOldest(key);
    if (second <= key.floor) return "too_old";
    const ofSecond = key.seconds.get(second) ?? new Map<string, number>();
    key.seconds.set(second, ofSecond.set(text, nowMs));
    key.count++;
    return "new";
  }

  /** How many are remembered. */
  get size(): number {
    return [...this.keys.values()].reduce((sum, { count }) => sum + count, 0);
  }

  private ofKey(accessKeyId: string): OfOneKey {
    const known = this.keys.get(accessKeyId);
    if (known !== undefined) return known;
    const made = { seconds: new Map(), count: 0, floor: Number.NEGATIVE_INFINITY, prunedMs: 0 };
    this.keys.set(accessKeyId, made);
    return made;
  }
}

/** Forgets signatures whose date is too old to be accepted. */
function forgetOver(key: OfOneKey, nowMs: number): void {
  key.prunedMs = nowMs;
  for (const second of key.seconds.keys())
    if (second * SECOND_MS < nowMs - KEPT_MS - SECOND_MS) forgetSecond(key, second);
}

function forgetOldest(key: OfOneKey): void {
  let oldest = Number.POSITIVE_INFINITY;
  for (const second of key.seconds.keys()) if (second < oldest) oldest = second;
  forgetSecond(key, oldest);
}

/** Forgotten signatures are not accepted again, even if the clock is set back. */
function forgetSecond(key: OfOneKey, second: number): void {
  key.floor = Math.max(key.floor, second);
  key.count -= key.seconds.get(second)?.size ?? 0;
  key.seconds.delete(second);
}
