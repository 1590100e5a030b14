/** One-time codes: once, for a minute, and not too many. */
import { expect, it } from "vitest";
import {
  SIGN_IN_CODE_MS,
  SIGN_IN_CODES_MAX,
  SIGN_IN_CODES_OF_A_KEY_MAX,
} from "../../../src/contracts/limits/authorization.ts";
import { SignInCodes } from "../../../src/control/dashboard/sign-in-codes.ts";

it("a code names its key once", () => {
  const codes = new SignInCodes();
  const [one, other] = [codes.make("a", 0), codes.make("b", 0)];
  expect(one).toMatch(/^[\w-]{43}$/);
  expect([codes.take(one, 1), codes.take(one, 1), codes.take(other, 1)]).toEqual(["a", undefined, "b"]);
});

it("a code ends after a minute", () => {
  const codes = new SignInCodes();
  const [early, late] = [codes.make("a", 0), codes.make("a", 0)];
  expect(codes.take(early, SIGN_IN_CODE_MS - 1)).toBe("a");
  expect(codes.take(late, SIGN_IN_CODE_MS)).toBe(undefined);
});

it("more codes of a key end its oldest, and none of another key", () => {
  const codes = new SignInCodes();
  const other = codes.make("other", 0);
  const mine = Array.from({ length: SIGN_IN_CODES_OF_A_KEY_MAX + 1 }, () => codes.make("mine", 0));
  expect(mine.map((code) => codes.take(code, 1))).toEqual([
    undefined,
    ...Array(SIGN_IN_CODES_OF_A_KEY_MAX).fill("mine"),
  ]);
  expect(codes.take(other, 1)).toBe("other");
});

it("more codes of all keys end the oldest", () => {
  const codes = new SignInCodes();
  const all = Array.from({ length: SIGN_IN_CODES_MAX + 1 }, (_, at) => codes.make(String(at), 0));
  expect([codes.take(all[0]!, 1), codes.take(all[1]!, 1)]).toEqual([undefined, "1"]);
});
