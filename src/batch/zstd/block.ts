/** Unpacks one compressed block of Zstandard (RFC 8878, section 3.1.1.3) to at most 128 KiB, even if it is damaged. */
import { BackwardBits, damaged } from "./bits.ts";
import {
  decodeHuffman,
  type FseTable,
  fseOfOne,
  fseTable,
  type HuffmanTable,
  readFse,
  readHuffman,
} from "./tables.ts";

export const ZSTD_BLOCK_BYTES_MAX = 128 * 1024;

/** The unpacked bytes before a block, up to a window. */
export interface History {
  /** Copies `length` bytes from `back` bytes before the end; throws if the history is shorter. */
  copy(into: Uint8Array, at: number, back: number, length: number): void;
}

/** The state that a block inherits from the one before it in its frame. */
export interface BlockState {
  huffman: HuffmanTable | undefined;
  tables: (FseTable | undefined)[];
  offsets: [number, number, number];
}

export function firstState(): BlockState {
  return { huffman: undefined, tables: [undefined, undefined, undefined], offsets: [1, 4, 8] };
}

/** Codes of lengths: the first value of each, and how many bits are added. */
function codes(first: number[], bits: number[]): { bases: Uint32Array; bits: Uint8Array } {
  const all = [...first.map(() => 0), ...bits];
  const bases = new Uint32Array(all.length);
  bases[0] = first[0]!;
  for (let i = 1; i < all.length; i++) bases[i] = bases[i - 1]! + (1 << all[i - 1]!);
  return { bases, bits: Uint8Array.from(all) };
}

const upTo = (count: number, from: number) => Array.from({ length: count }, (_, i) => i + from);
const LITERAL_LENGTHS = codes(
  upTo(16, 0),
  [1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
);
const MATCH_LENGTHS = codes(
  upTo(32, 3),
  [1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
);

/** Literal lengths, offsets, match lengths, in the order of the format. */
const KINDS = [
  { maxLog: 9, symbols: 36 },
  { maxLog: 8, symbols: 32 },
  { maxLog: 9, symbols: 53 },
];
const ones = (count: number) => Array.from({ length: count }, () => 1);
const PREDEFINED = [
  fseTable(
    [4, 3, ...ones(11).map(() => 2), 1, 1, 1, ...ones(9).map(() => 2), 3, 2, ...ones(5), -1, -1, -1, -1],
    6,
  ),
  fseTable([...ones(6), 2, 2, 2, ...ones(15), -1, -1, -1, -1, -1], 5),
  fseTable([1, 4, 3, 2, 2, 2, 2, 2, 2, ...ones(37), -1, -1, -1, -1, -1, -1, -1], 6),
];

const blockBuffer = new Uint8Array(ZSTD_BLOCK_BYTES_MAX);
const literalBuffer = new Uint8Array(ZSTD_BLOCK_BYTES_MAX);

/** Unpacks a block; the result is valid until the next call. */
export function decodeBlock(
  block: Uint8Array,
  state: BlockState,
  history: History,
  most: number,
): Uint8Array {
  const { literals, bytes } = readLiterals(block, state, most);
  const length = runSequences(block.subarray(bytes), state, { literals, history, most });
  return blockBuffer.subarray(0, length);
}

function readLiterals(
  block: Uint8Array,
  state: BlockState,
  most: number,
): { literals: Uint8Array; bytes: number } {
  const byte = (at: number) => block[at] ?? damaged("a block ends early");
  const [type, format] = [byte(0) & 3, (byte(0) >> 2) & 3];
  if (type < 2) {
    const head = format % 2 === 0 ? 1 : format === 1 ? 2 : 3;
    const size =
      head === 1 ? byte(0) >> 3 : (byte(0) >> 4) | (byte(1) << 4) | (head === 3 ? byte(2) << 12 : 0);
    if (size > most) damaged("a block is too large");
    if (type === 1) return { literals: literalBuffer.subarray(0, size).fill(byte(head)), bytes: head + 1 };
    if (head + size > block.length) damaged("a block ends early");
    return { literals: block.subarray(head, head + size), bytes: head + size };
  }
  const head = format < 2 ? 3 : format + 2;
  const low = byte(0) | (byte(1) << 8) | (byte(2) << 16) | (head > 3 ? byte(3) << 24 : 0);
  const width = head === 3 ? 10 : head === 4 ? 14 : 18;
  const mask = (1 << width) - 1;
  const size = (low >>> 4) & mask;
  const packed = head === 5 ? (low >>> 22) | (byte(4) << 10) : (low >>> (4 + width)) & mask;
  if (size > most || head + packed > block.length) damaged("a block is too large, or ends early");
  const content = block.subarray(head, head + packed);
  return {
    literals: unpackLiterals(content, state, { size, isNew: type === 2, streams: format === 0 ? 1 : 4 }),
    bytes: head + packed,
  };
}

function unpackLiterals(
  content: Uint8Array,
  state: BlockState,
  { size, isNew, streams }: { size: number; isNew: boolean; streams: number },
): Uint8Array {
  let data = content;
  if (isNew) {
    const { table, bytes } = readHuffman(content);
    state.huffman = table;
    data = content.subarray(bytes);
  }
  const table = state.huffman ?? damaged("a block refers to a table that does not exist");
  const literals = literalBuffer.subarray(0, size);
  if (streams === 1) {
    decodeHuffman(table, data, literals);
    return literals;
  }
  if (data.length < 6) damaged("a block ends early");
  const part = (size + 3) >> 2;
  let [from, to] = [6, 0];
  for (let i = 0; i < 4; i++) {
    const bytes = i === 3 ? data.length - from : data[2 * i]! | (data[2 * i + 1]! << 8);
    const end = i === 3 ? size : to + part;
    if (bytes < 0 || from + bytes > data.length || end > size) damaged("a block ends early");
    decodeHuffman(table, data.subarray(from, from + bytes), literals.subarray(to, end));
    from += bytes;
    to = end;
  }
  return literals;
}

/** Copies literals and earlier bytes in turn, as the sequences say. Returns the number of bytes written. */
function runSequences(
  data: Uint8Array,
  state: BlockState,
  { literals, history, most }: { literals: Uint8Array; history: History; most: number },
): number {
  const { count, bytes } = readCount(data);
  if (count === 0) {
    blockBuffer.set(literals);
    return literals.length;
  }
  const { tables, bytes: tableBytes } = readTables(data.subarray(bytes), state);
  const bits = new BackwardBits(data.subarray(bytes + tableBytes));
  const [lengths, offsets, matches] = tables as [FseTable, FseTable, FseTable];
  let [ofLength, ofOffset, ofMatch] = [
    bits.read(lengths.log),
    bits.read(offsets.log),
    bits.read(matches.log),
  ];
  let [taken, at] = [0, 0];
  for (let i = 0; i < count; i++) {
    const offsetCode = offsets.symbols[ofOffset]!;
    if (offsetCode > 28) damaged("an offset is too large");
    const high = offsetCode > 16 ? bits.read(offsetCode - 16) << 16 : 0;
    const value = (1 << offsetCode) + high + bits.read(Math.min(offsetCode, 16));
    const matchCode = matches.symbols[ofMatch]!;
    const match = MATCH_LENGTHS.bases[matchCode]! + bits.read(MATCH_LENGTHS.bits[matchCode]!);
    const lengthCode = lengths.symbols[ofLength]!;
    const length = LITERAL_LENGTHS.bases[lengthCode]! + bits.read(LITERAL_LENGTHS.bits[lengthCode]!);
    // The states after the last sequence are not in the stream.
    if (i < count - 1) {
      ofLength = lengths.bases[ofLength]! + bits.read(lengths.bits[ofLength]!);
      ofMatch = matches.bases[ofMatch]! + bits.read(matches.bits[ofMatch]!);
      ofOffset = offsets.bases[ofOffset]! + bits.read(offsets.bits[ofOffset]!);
    }
    if (bits.left < 0) damaged("the sequences of a block end early");
    if (taken + length > literals.length || at + length + match > most) damaged("a block is too large");
    for (const end = taken + length; taken < end; ) blockBuffer[at++] = literals[taken++]!;
    copyMatch(offsetOf(value, length, state.offsets), at, match, history);
    at += match;
  }
  if (bits.left !== 0) damaged("the sequences of a block have one end too many");
  const rest = literals.subarray(taken);
  if (at + rest.length > most) damaged("a block is too large");
  blockBuffer.set(rest, at);
  return at + rest.length;
}

function copyMatch(offset: number, at: number, length: number, history: History): void {
  let [to, from] = [at, at - offset];
  if (from < 0) {
    const before = Math.min(length, -from);
    history.copy(blockBuffer, at, -from, before);
    to += before;
    from += before;
  }
  // Byte by byte: a match may overlap with its own output.
  for (const end = at + length; to < end; ) blockBuffer[to++] = blockBuffer[from++]!;
}

/** Values up to 3 refer to one of the last offsets. */
function offsetOf(value: number, literals: number, last: BlockState["offsets"]): number {
  if (value > 3) {
    [last[0], last[1], last[2]] = [value - 3, last[0], last[1]];
    return last[0];
  }
  const which = value - 1 + (literals === 0 ? 1 : 0);
  if (which === 0) return last[0];
  const offset = which === 3 ? last[0] - 1 : last[which]!;
  if (offset === 0) damaged("an offset is 0");
  if (which !== 1) last[2] = last[1];
  last[1] = last[0];
  last[0] = offset;
  return offset;
}

function readCount(data: Uint8Array): { count: number; bytes: number } {
  const byte = (at: number) => data[at] ?? damaged("a block ends early");
  const first = byte(0);
  if (first < 128) {
    if (first === 0 && data.length > 1) damaged("a block has one end too many");
    return { count: first, bytes: 1 };
  }
  if (first < 255) return { count: ((first - 128) << 8) + byte(1), bytes: 2 };
  return { count: byte(1) + (byte(2) << 8) + 0x7f00, bytes: 3 };
}

function readTables(data: Uint8Array, state: BlockState): { tables: FseTable[]; bytes: number } {
  const modes = data[0] ?? damaged("a block ends early");
  if ((modes & 3) !== 0) damaged("a block has bits that are reserved");
  let at = 1;
  const tables = KINDS.map((kind, which) => {
    const mode = (modes >> (6 - 2 * which)) & 3;
    if (mode === 0) return PREDEFINED[which]!;
    if (mode === 3) return state.tables[which] ?? damaged("a block refers to a table that does not exist");
    if (mode === 1) {
      const symbol = data[at++] ?? damaged("a block ends early");
      return symbol < kind.symbols ? fseOfOne(symbol) : damaged("a table has a symbol that does not exist");
    }
    const { table, bytes } = readFse(data.subarray(at), kind);
    at += bytes;
    return table;
  });
  state.tables = tables;
  return { tables, bytes: at };
}
