/**
 * Reads the bits of Zstandard (RFC 8878): forwards for tables of probabilities, backwards for the data that they
 * encode.
 */

export function damaged(what: string): never {
  throw new Error(what);
}

/** The position of the highest bit that is set; -1 for 0. */
export function highBit(value: number): number {
  return 31 - Math.clz32(value);
}

/** 32 bits from a byte on; past the end they are 0. */
function word(data: Uint8Array, at: number): number {
  return data[at]! | (data[at + 1]! << 8) | (data[at + 2]! << 16) | (data[at + 3]! << 24);
}

export class ForwardBits {
  /** The next bit. */
  at = 0;
  private readonly data: Uint8Array;

  constructor(data: Uint8Array) {
    this.data = data;
  }

  read(count: number): number {
    const value = (word(this.data, this.at >> 3) >>> (this.at & 7)) & ((1 << count) - 1);
    this.at += count;
    return value;
  }

  /** Bytes read so far, a begun one included; throws if there were fewer. */
  get bytes(): number {
    const bytes = (this.at + 7) >> 3;
    return bytes <= this.data.length ? bytes : damaged("a table ends early");
  }
}

/** Read from the end; the highest bit of the last byte marks where it begins. */
export class BackwardBits {
  /** Bits that are left. Negative if more were read than there are: those were read as 0. */
  left: number;
  private readonly data: Uint8Array;

  constructor(data: Uint8Array) {
    const last = data[data.length - 1];
    if (last === undefined || last === 0) damaged("a stream of bits has no end");
    this.data = data;
    this.left = data.length * 8 - 8 + highBit(last!);
  }

  /** At most 25 at once. */
  read(count: number): number {
    this.left -= count;
    return this.bitsAt(this.left, count);
  }

  /** The next bits, without taking them. */
  peek(count: number): number {
    return this.bitsAt(this.left - count, count);
  }

  private bitsAt(at: number, count: number): number {
    const mask = (1 << count) - 1;
    if (at >= 0) return (word(this.data, at >> 3) >>> (at & 7)) & mask;
    // Bits before the first one are 0.
    return at <= -count ? 0 : (word(this.data, 0) << -at) & mask;
  }
}
