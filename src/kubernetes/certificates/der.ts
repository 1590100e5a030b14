/** Writes the few types of ASN.1 that a certificate has, in DER (X.690). Pure. */

const SHORT_LENGTH_MAX = 127;

/** An element: its tag, the length of its content, the content. */
export function element(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content]);
}

function lengthOf(bytes: number): Buffer {
  if (bytes <= SHORT_LENGTH_MAX) return Buffer.from([bytes]);
  const digits: number[] = [];
  for (let rest = bytes; rest > 0; rest = Math.floor(rest / 256)) digits.unshift(rest % 256);
  return Buffer.from([0x80 | digits.length, ...digits]);
}

export const sequence = (...parts: readonly Uint8Array[]) => element(0x30, ...parts);
export const set = (...parts: readonly Uint8Array[]) => element(0x31, ...parts);
export const octets = (content: Uint8Array) => element(0x04, content);
export const text = (value: string) => element(0x0c, Buffer.from(value));
export const truth = () => element(0x01, Buffer.from([0xff]));
/** Without unused bits at its end. */
export const bits = (content: Uint8Array) => element(0x03, Buffer.from([0]), content);
/** A field that the standard numbers; `isPlain`: its content replaces that of the type. */
export const tagged = (number: number, content: Uint8Array, isPlain = false) =>
  element((isPlain ? 0x80 : 0xa0) | number, content);

/** A number that is not negative, from its bytes. */
export function integer(bytes: Uint8Array): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0);
  const digits = first < 0 ? Buffer.from([0]) : Buffer.from(bytes.subarray(first));
  return element(0x02, digits[0]! >= 0x80 ? Buffer.from([0]) : Buffer.alloc(0), digits);
}

/** An object identifier such as `2.5.4.3`. */
export function identifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return element(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(number: number): number[] {
  const digits = [number % 128];
  for (let rest = Math.floor(number / 128); rest > 0; rest = Math.floor(rest / 128))
    digits.unshift(0x80 | (rest % 128));
  return digits;
}

/** As certificates write it: two digits of the year until 2049, four after that. */
export function time(date: Date): Buffer {
  const digits = date
    .toISOString()
    .replace(/\.\d+Z$/, "Z")
    .replace(/[-:T]/g, "");
  const isShort = date.getUTCFullYear() < 2050;
  return element(isShort ? 0x17 : 0x18, Buffer.from(isShort ? digits.slice(2) : digits));
}
