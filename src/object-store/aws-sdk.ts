/**
 * The clients of AWS, loaded when the first job needs them, in pieces: as one, S3's would block the event loop for 100
 * ms. `require` takes half as long as `import`, which reads a CommonJS module twice.
 */
import { createRequire } from "node:module";
import { setImmediate as nextTurn } from "node:timers/promises";

/** Large parts that both clients load anyway. A release of the SDK that has none of them is loaded as one. */
const PARTS = [
  "@smithy/core/serde",
  "@smithy/core/protocols",
  "@aws-sdk/core/client",
  "@aws-sdk/checksums/flexible-checksums",
  "@aws-sdk/core/protocols",
] as const;

const requireHere = createRequire(import.meta.url);
const loaded = new Map<string, Promise<unknown>>();

export function s3Sdk(): Promise<typeof import("@aws-sdk/client-s3")> {
  return once("@aws-sdk/client-s3");
}

export function sqsSdk(): Promise<typeof import("@aws-sdk/client-sqs")> {
  return once("@aws-sdk/client-sqs");
}

function once<Sdk>(name: string): Promise<Sdk> {
  let sdk = loaded.get(name);
  if (sdk === undefined) {
    sdk = inParts(name);
    loaded.set(name, sdk);
  }
  return sdk as Promise<Sdk>;
}

async function inParts(name: string): Promise<unknown> {
  const requireThere = createRequire(requireHere.resolve(name));
  for (const part of PARTS) {
    try {
      requireThere(part);
    } catch {
      // Another release has other parts.
    }
    await nextTurn();
  }
  return requireHere(name);
}
