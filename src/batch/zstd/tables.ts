/**
 * The two codes of Zstandard (RFC 8878, section 4): finite state entropy, and Huffman's. Pure; throws if a table is
 * invalid.
 */
import { BackwardBits, damaged, ForwardBits, highBit } from "./bits.ts";

/** Indexed by state: the symbol, and the bits and base that give the next state. */
export interface FseTable {
  log: number;
  symbols: Uint8Array;
  bits: Uint8Array;
  bases: Uint16Array;
}

/** `weights`: how many states each symbol has; -1 for one state with all bits. */
export function fseTable(weights: readonly number[], log: number): FseTable {
  const size = 1 << log;
  const table = {
    log,
    symbols: new Uint8Array(size),
    bits: new Uint8Array(size),
    bases: new Uint16Array(size),
  };
  const next = new Uint16Array(weights.length);
  let high = size;
  weights.forEach((weight, symbol) => {
    next[symbol] = Math.abs(weight);
    if (weight === -1) table.symbols[--high] = symbol;
  });
  spread(weights, table.symbols, high);
  for (let state = 0; state < size; state++) {
    const at = next[table.symbols[state]!]!++;
    const bits = log - highBit(at);
    table.bits[state] = bits;
    table.bases[state] = (at << bits) - size;
  }
  return table;
}

function spread(weights: readonly number[], symbols: Uint8Array, high: number): void {
  const size = symbols.length;
  const step = (size >> 1) + (size >> 3) + 3;
  let at = 0;
  weights.forEach((weight, symbol) => {
    for (let i = 0; i < weight; i++) {
      symbols[at] = symbol;
      do at = (at + step) & (size - 1);
      while (at >= high);
    }
  });
  if (at !== 0) damaged("the probabilities of a table do not add up");
}

/** A table of one symbol, which takes no bits. */
export function fseOfOne(symbol: number): FseTable {
  return { log: 0, symbols: Uint8Array.of(symbol), bits: new Uint8Array(1), bases: new Uint16Array(1) };
}

/** Reads the probabilities at the beginning of `data`. Also returns their length in bytes. */
export function readFse(
  data: Uint8Array,
  { maxLog, symbols }: { maxLog: number; symbols: number },
): { table: FseTable; bytes: number } {
  const bits = new ForwardBits(data);
  const log = bits.read(4) + 5;
  if (log > maxLog) damaged("a table is too large");
  const weights: number[] = [];
  let left = 1 << log;
  while (left > 0 && weights.length < symbols) {
    const weight = readWeight(bits, left);
    left -= Math.abs(weight);
    weights.push(weight);
    if (weight === 0) readZeros(bits, weights, symbols);
  }
  if (left !== 0 || weights.length > symbols) damaged("the probabilities of a table do not add up");
  const { bytes } = bits;
  return { table: fseTable(weights, log), bytes };
}

/** Smaller values take one bit less. */
function readWeight(bits: ForwardBits, left: number): number {
  const count = highBit(left + 1) + 1;
  const value = bits.read(count);
  const lower = value & ((1 << (count - 1)) - 1);
  const shorter = (1 << count) - 2 - left;
  if (lower < shorter) {
    bits.at--;
    return lower - 1;
  }
  return (value > lower ? value - shorter : value) - 1;
}

function readZeros(bits: ForwardBits, weights: number[], most: number): void {
  for (let more = 3; more === 3 && weights.length <= most; ) {
    more = bits.read(2);
    for (let i = 0; i < more; i++) weights.push(0);
  }
}

/** Indexed by the next `log` bits: the symbol, and how many of them are its code. */
export interface HuffmanTable {
  log: number;
  symbols: Uint8Array;
  bits: Uint8Array;
}

const HUFFMAN_LOG_MAX = 11;

/** Reads the description of a Huffman table at the beginning of `data`. Also returns its length in bytes. */
export function readHuffman(data: Uint8Array): { table: HuffmanTable; bytes: number } {
  const head = data[0] ?? damaged("a table is missing");
  if (head < 128) {
    const weights = readWeightsByFse(data.subarray(1, 1 + head));
    return { table: huffmanTable(weights), bytes: 1 + head };
  }
  const weights = Array.from({ length: head - 127 }, (_, i) => {
    const pair = data[1 + (i >> 1)] ?? damaged("a table ends early");
    return i % 2 === 0 ? pair >> 4 : pair & 15;
  });
  return { table: huffmanTable(weights), bytes: 1 + ((weights.length + 1) >> 1) };
}

function readWeightsByFse(data: Uint8Array): number[] {
  const { table, bytes } = readFse(data, { maxLog: 6, symbols: 256 });
  const bits = new BackwardBits(data.subarray(bytes));
  const weights: number[] = [];
  // Two states take turns; the other one has the last symbol.
  let [state, other] = [bits.read(table.log), bits.read(table.log)];
  while (weights.length < 255) {
    weights.push(table.symbols[state]!);
    const next = table.bases[state]! + bits.read(table.bits[state]!);
    if (bits.left < 0) {
      weights.push(table.symbols[other]!);
      return weights;
    }
    [state, other] = [other, next];
  }
  return damaged("a table has too many symbols");
}

/** The last symbol's weight is not stored: it completes the sum to a power of two. */
function huffmanTable(weights: number[]): HuffmanTable {
  const sum = weights.reduce((all, weight) => all + (weight > 0 ? 1 << (weight - 1) : 0), 0);
  const log = highBit(sum) + 1;
  const rest = (1 << log) - sum;
  if (sum === 0 || log > HUFFMAN_LOG_MAX || (rest & (rest - 1)) !== 0 || weights.length > 255)
    damaged("the weights of a table do not add up");
  const all = [...weights, highBit(rest) + 1];
  const table = { log, symbols: new Uint8Array(1 << log), bits: new Uint8Array(1 << log) };
  let at = 0;
  for (let weight = 1; weight <= log; weight++)
    all.forEach((own, symbol) => {
      if (own !== weight) return;
      table.symbols.fill(symbol, at, at + (1 << (weight - 1)));
      table.bits.fill(log + 1 - weight, at, at + (1 << (weight - 1)));
      at += 1 << (weight - 1);
    });
  return table;
}

/** Decodes exactly `into.length` symbols. */
export function decodeHuffman(
  { log, symbols, bits: lengths }: HuffmanTable,
  data: Uint8Array,
  into: Uint8Array,
): void {
  const bits = new BackwardBits(data);
  for (let i = 0; i < into.length; i++) {
    const code = bits.peek(log);
    into[i] = symbols[code]!;
    bits.left -= lengths[code]!;
  }
  if (bits.left !== 0) damaged("literals do not have their declared length");
}
