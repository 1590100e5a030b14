/** Encodes a JSON value as MessagePack with every number as it was written: 1.0 is a float, integers are exact. */
import { encode } from "@msgpack/msgpack";
import { JsonNumber } from "../../base/json/exact.ts";

const INTEGERS = { least: -(2n ** 63n), most: 2n ** 64n - 1n };

export function encodeExact(value: unknown): Buffer {
  const parts: Uint8Array[] = [];
  write(value, parts);
  return Buffer.concat(parts);
}

function write(value: unknown, parts: Uint8Array[]): void {
  if (value instanceof JsonNumber) parts.push(encodeNumber(value));
  else if (Array.isArray(value)) {
    parts.push(head(value.length, { fixed: 0x90, fixedMax: 15, wide: 0xdc }));
    for (const item of value) write(item, parts);
  } else if (value !== null && typeof value === "object") {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    parts.push(head(members.length, { fixed: 0x80, fixedMax: 15, wide: 0xde }));
    for (const [name, member] of members) {
      parts.push(encode(name));
      write(member, parts);
    }
  } else parts.push(encode(value));
}

/** An integer that is too large for the format becomes a string of its digits. */
function encodeNumber(number: JsonNumber): Uint8Array {
  if (!number.isInteger) return encode(Number(number.text), { forceIntegerToFloat: true });
  const integer = BigInt(number.text);
  if (Number.isSafeInteger(Number(integer))) return encode(Number(integer));
  const isInRange = integer >= INTEGERS.least && integer <= INTEGERS.most;
  return isInRange ? encode(integer, { useBigInt64: true }) : encode(number.text);
}

/** The head of a list or a map: one byte, or one byte with a count of two or four bytes. */
function head(
  count: number,
  { fixed, fixedMax, wide }: Record<"fixed" | "fixedMax" | "wide", number>,
): Buffer {
  if (count <= fixedMax) return Buffer.from([fixed | count]);
  const bytes = Buffer.alloc(count < 0x10000 ? 3 : 5);
  bytes[0] = count < 0x10000 ? wide : wide + 1;
  bytes.writeUIntBE(count, 1, bytes.length - 1);
  return bytes;
}
