/** Which refusals of a store are final, and which are tried again. */
import { describe, expect, it } from "vitest";
import { storeError } from "../../src/object-store/store-errors.ts";

const refusal = { path: "s3://b/k", access: "write", identity: "a key", cure: "do this" } as const;
const codeOf = (status: number | undefined, error: { name?: string; message?: string; code?: string }) =>
  storeError(Object.assign(new Error(error.message ?? "no"), error), { ...refusal, status }).code;

describe("a refusal of a store", () => {
  it.each([
    ["denied access", 403, { name: "AccessDenied" }],
    ["a key that is not known", 400, { name: "InvalidAccessKeyId" }],
    ["what the store cannot do", 501, { name: "NotImplemented" }],
  ])("is final: %s", (_, status, error) => {
    expect(codeOf(status, error)).toBe("store_forbidden");
  });

  it("speaks of access first only if access was denied", () => {
    const said = (status: number) => storeError(new Error("no"), { ...refusal, status }).message;
    expect(said(403)).toBe("s3://b/k may not be written with a key: the store answered 403 no; do this");
    expect(said(307)).toBe(
      "s3://b/k cannot be written: the store answered 307 no; if that is about access with a key, do this",
    );
  });

  it.each([
    ["no response", undefined, {}],
    ["too many requests", 429, {}],
    ["a body that came too slowly (S3)", 400, { name: "RequestTimeout" }],
    ["a body that was cut off (S3)", 400, { name: "IncompleteBody" }],
    ["a concurrent change (S3)", 409, { name: "OperationAborted" }],
    ["a damaged body (S3)", 400, { name: "BadDigest" }],
    [
      "a damaged body (Azure)",
      400,
      { name: "RestError", code: "Md5Mismatch", message: "The MD5 value differs" },
    ],
  ])("is tried again: %s", (_, status, error) => {
    expect(codeOf(status, error)).toBe("store_unreachable");
  });
});
