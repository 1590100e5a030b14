/** What is used here of the WebAssembly JavaScript Interface (W3C), which Node has and the types of Node 20 have not. */
declare namespace WebAssembly {
  class Module {
    constructor(program: Uint8Array);
  }
  class Instance {
    constructor(module: Module);
    readonly exports: Record<string, unknown>;
  }
  interface Memory {
    /** Another one after each growth. */
    readonly buffer: ArrayBuffer;
    /** By so many pages of 64 KiB. */
    grow(pages: number): number;
  }
  interface Global {
    readonly value: number;
  }
}
