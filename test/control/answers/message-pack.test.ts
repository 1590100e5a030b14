import { decode } from "@msgpack/msgpack";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseExact } from "../../../src/base/json/exact.ts";
import { encodeExact } from "../../../src/control/answers/message-pack.ts";

describe("JSON with exact numbers", () => {
  it("is MessagePack with the same numbers", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        // This reader refuses the key; integers beyond 64 bits are texts.
        fc.pre(!text.includes("__proto__") && !/\d{19}/.test(text));
        expect(decode(encodeExact(parseExact(text)))).toEqual(JSON.parse(text));
      }),
    );
    const long = JSON.stringify(Array.from({ length: 70_000 }, (_, at) => at));
    expect(decode(encodeExact(parseExact(long)))).toEqual(JSON.parse(long));
    expect(encodeExact(parseExact("1.0"))).toEqual(Buffer.from("cb3ff0000000000000", "hex"));
    expect(encodeExact(parseExact("18446744073709551615"))).toEqual(Buffer.from("cfffffffffffffffff", "hex"));
    expect(encodeExact(parseExact("-9223372036854775808"))).toEqual(Buffer.from("d38000000000000000", "hex"));
    expect(decode(encodeExact(parseExact("18446744073709551616")))).toBe("18446744073709551616");
  });
});
