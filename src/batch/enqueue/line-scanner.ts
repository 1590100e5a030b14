/**
 * Finds the lines of a block and checks that each is a JSON object, in WebAssembly (assembly/json-lines.ts). This is
 * three times as fast as the same in JavaScript. Blocks are copied to its memory, which costs a sixtieth of reading
 * them.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ITEM_DEPTH_MAX, NUMBER_CHARACTERS_MAX } from "../../contracts/limits/submissions.ts";
import { packageRoot } from "../../contracts/package-root.ts";

const PROGRAM = join(packageRoot, "dist", "json-lines.wasm");
const PAGE_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

/** Indexed by `Problem` of assembly/json-lines.ts. */
const PROBLEMS = [
  "",
  "does not begin with {",
  "has text after the object",
  `is nested deeper than ${ITEM_DEPTH_MAX}`,
  "ends too early",
  'is not valid JSON: "," or a closing bracket was expected',
  "is not valid JSON: a member's name in quotes was expected",
  'is not valid JSON: ":" was expected',
  "is not valid JSON: a value was expected",
  "ends inside a string",
  "has a control character inside a string",
  "has an unknown escape inside a string",
  "has a bad \\u escape",
  "has a number without digits after its point",
  "has a number without digits in its exponent",
  `has a number of over ${NUMBER_CHARACTERS_MAX} characters`,
];

interface Program {
  memory: WebAssembly.Memory;
  scan(at: number, end: number): number;
  problem(): number;
  INPUT: WebAssembly.Global;
  READ_PAST: WebAssembly.Global;
  TABLE: WebAssembly.Global;
  LINES_MAX: WebAssembly.Global;
}

export class LineScanner {
  private readonly program: Program;
  private readonly input: number;
  private readonly linesMax: number;
  private bytes: Uint8Array;
  private table: Uint32Array;
  private end = 0;

  constructor() {
    const module = new WebAssembly.Module(readFileSync(PROGRAM));
    this.program = new WebAssembly.Instance(module).exports as unknown as Program;
    this.input = this.program.INPUT.value;
    this.linesMax = this.program.LINES_MAX.value;
    this.bytes = new Uint8Array();
    this.table = new Uint32Array();
    this.look();
  }

  /** Loads the first `end` bytes of `block`, which end with a newline or with the file. */
  load(block: Buffer, end: number): void {
    const needed = this.input + end + 1 + this.program.READ_PAST.value;
    const missing = needed - this.bytes.length;
    if (missing > 0) {
      this.program.memory.grow(Math.ceil(missing / PAGE_BYTES));
      this.look();
    }
    this.bytes.set(block.subarray(0, end), this.input);
    this.bytes[this.input + end] = NEWLINE;
    this.end = end;
  }

  /**
   * Finds the next lines from `at` on and returns how many; `lineEnd` and `compactBytes` describe them. If 0, the line
   * at `at` is invalid, and `problem` says why.
   */
  scan(at: number): number {
    return this.program.scan(this.input + at, this.input + this.end);
  }

  /** The position after the newline of found line `i`, which counts from 0. */
  lineEnd(i: number): number {
    return Math.min(this.table[2 * i]! - this.input, this.end);
  }

  /** The object's bytes without white space between tokens; 0 for a blank line. */
  compactBytes(i: number): number {
    return this.table[2 * i + 1]!;
  }

  /** The problem of the line at which `scan` stopped, as the text after "line 7". */
  get problem(): string {
    return PROBLEMS[this.program.problem()]!;
  }

  /** Renews the views: growth gives the memory another buffer. */
  private look(): void {
    const { buffer } = this.program.memory;
    this.bytes = new Uint8Array(buffer);
    this.table = new Uint32Array(buffer, this.program.TABLE.value, 2 * this.linesMax);
  }
}
