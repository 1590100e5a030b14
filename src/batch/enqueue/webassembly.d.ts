/**
 * The part of the WebAssembly JavaScript Interface (W3C) that is used here. Node has it; the types of Node 20 do not.
 */
declare namespace WebAssembly {
  class Module {
    constructor(program: Uint8Array);
  }
  class Instance {
    constructor(module: Module);
    readonly exports: Record<string, unknown>;
  }
  interface Memory {
    /** Replaced at each growth. */
    readonly buffer: ArrayBuffer;
    /** Grows by `pages` pages of 64 KiB. */
    grow(pages: number): number;
  }
  interface Global {
    readonly value: number;
  }
}
