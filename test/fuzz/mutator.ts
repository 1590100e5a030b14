/** Makes new inputs of old ones: bytes, words of a dictionary, repetitions, nesting, and pieces of other inputs. */

const NUMBERS = [
  "0",
  "-1",
  "1",
  "255",
  "256",
  "65535",
  "65536",
  "2147483647",
  "4294967295",
  "4294967296",
  "9007199254740993",
  "18446744073709551616",
  "1e309",
  "-0.0",
  "1e-400",
  "0.1",
  "NaN",
  "99999999999999999999999999999999",
];
const PAIRS = [
  ["[", "]"],
  ["{", "}"],
  ['{"a":', "}"],
  ["(", ")"],
  ['"', '"'],
  ["- ", "\n"],
  ["{a,", "}"],
  ["\\", ""],
] as const;
const WORDS_32 = [
  0, 1, 11, 12, 16, 255, 256, 0xffff, 0x10000, 262_144, 262_145, 0x7fffffff, 0x80000000, 0xfffffffe,
  0xffffffff,
];
const BYTES = [0, 1, 0x20, 0x22, 0x2c, 0x2f, 0x5c, 0x7f, 0x80, 0xc0, 0xe9, 0xf0, 0xff, 0x0a, 0x0d];
const REPEATS_MAX = 20_000;

type Change = (input: Buffer) => Buffer;

export class Mutator {
  private readonly random: () => number;
  private readonly dictionary: readonly string[];
  private readonly maxBytes: number;
  private readonly changes: readonly Change[];

  constructor(random: () => number, dictionary: readonly string[], maxBytes: number) {
    this.random = random;
    this.dictionary = dictionary;
    this.maxBytes = maxBytes;
    this.changes = [
      (input) => this.flipped(input),
      (input) => this.withByte(input),
      (input) => this.withWord32(input),
      (input) => this.without(input),
      (input) => this.put(input, this.piece(input)),
      (input) => this.put(input, this.word()),
      (input) => this.put(input, this.word()),
      (input) => this.over(input, this.word()),
      (input) => this.put(input, Buffer.from(this.pick(NUMBERS))),
      (input) => this.withNumber(input),
      (input) => this.nested(input),
      (input) => this.repeated(input),
    ];
  }

  /** A few changes of `input`; `other` is another input of the corpus. */
  mutate(input: Buffer, other: Buffer): Buffer {
    let changed = this.random() < 0.1 ? this.spliced(input, other) : input;
    for (let more = true; more; more = this.random() < 0.5) changed = this.pick(this.changes)(changed);
    return changed.subarray(0, this.maxBytes);
  }

  /** Up to, and without, `end`. */
  below(end: number): number {
    return Math.floor(this.random() * end);
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }

  private flipped(input: Buffer): Buffer {
    if (input.length === 0) return input;
    const changed = Buffer.from(input);
    changed[this.below(input.length)]! ^= 1 << this.below(8);
    return changed;
  }

  private withByte(input: Buffer): Buffer {
    if (input.length === 0) return Buffer.from([this.pick(BYTES)]);
    const changed = Buffer.from(input);
    changed[this.below(input.length)] = this.random() < 0.5 ? this.pick(BYTES) : this.below(256);
    return changed;
  }

  private withWord32(input: Buffer): Buffer {
    if (input.length < 4) return input;
    const changed = Buffer.from(input);
    changed.writeUInt32LE(this.pick(WORDS_32), this.below(input.length - 3));
    return changed;
  }

  private without(input: Buffer): Buffer {
    const [start, end] = this.range(input);
    return Buffer.concat([input.subarray(0, start), input.subarray(end)]);
  }

  private put(input: Buffer, piece: Buffer): Buffer {
    const at = this.below(input.length + 1);
    return Buffer.concat([input.subarray(0, at), piece, input.subarray(at)]);
  }

  private over(input: Buffer, piece: Buffer): Buffer {
    const at = this.below(input.length + 1);
    return Buffer.concat([input.subarray(0, at), piece, input.subarray(at + piece.length)]);
  }

  /** A decimal number of the input becomes another one. */
  private withNumber(input: Buffer): Buffer {
    const found = [...input.toString("latin1").matchAll(/-?\d+/g)];
    if (found.length === 0) return input;
    const { 0: text, index } = this.pick(found);
    const rest = input.subarray(index + text.length);
    return Buffer.concat([input.subarray(0, index), Buffer.from(this.pick(NUMBERS)), rest]);
  }

  private nested(input: Buffer): Buffer {
    const [start, end] = this.range(input);
    const [open, close] = this.pick(PAIRS);
    const depth = 2 ** this.below(14);
    const parts = [
      Buffer.from(open.repeat(depth)),
      input.subarray(start, end),
      Buffer.from(close.repeat(depth)),
    ];
    return Buffer.concat([input.subarray(0, start), ...parts, input.subarray(end)]).subarray(
      0,
      this.maxBytes,
    );
  }

  private repeated(input: Buffer): Buffer {
    const piece = this.random() < 0.5 ? this.word() : this.piece(input);
    if (piece.length === 0) return input;
    const most = Math.min(REPEATS_MAX, Math.ceil(this.maxBytes / piece.length));
    const times = Math.min(most, 2 ** this.below(16));
    return this.put(input, Buffer.concat(Array.from({ length: times }, () => piece)));
  }

  private spliced(input: Buffer, other: Buffer): Buffer {
    return Buffer.concat([
      input.subarray(0, this.below(input.length + 1)),
      other.subarray(this.below(other.length + 1)),
    ]);
  }

  private word(): Buffer {
    return this.dictionary.length === 0
      ? Buffer.from([this.below(256)])
      : Buffer.from(this.pick(this.dictionary), "latin1");
  }

  private piece(input: Buffer): Buffer {
    return input.subarray(...this.range(input));
  }

  /** Short ones most often. */
  private range(input: Buffer): [start: number, end: number] {
    const start = this.below(input.length + 1);
    const most = this.random() < 0.7 ? Math.min(16, input.length - start) : input.length - start;
    return [start, start + this.below(most + 1)];
  }
}
