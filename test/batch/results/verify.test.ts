/** An output is read again in pieces, between which whoever asked for it may leave. */
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { Part } from "../../../src/batch/output/part-rows.ts";
import { type CheckedPart, OutputCheck } from "../../../src/batch/results/verify.ts";
import type { ObjectStore, OpenObject } from "../../../src/object-store/object-store.ts";

const MIB = 1024 * 1024;

/** A store with one object, which counts what is read of it. */
function storeWith(content: Buffer): { store: ObjectStore; seen: { read: number; open: number } } {
  const seen = { read: 0, open: 0 };
  const object: Pick<OpenObject, "read" | "close"> = {
    read: async (target, offset, position, length) => {
      const copied = content.copy(target, offset, position, position + length);
      seen.read += copied;
      return copied;
    },
    close: async () => {
      seen.open--;
    },
  };
  const open = async () => {
    seen.open++;
    return object as OpenObject;
  };
  return { store: { open } as unknown as ObjectStore, seen };
}

const line = (batch: number) =>
  `${JSON.stringify({ batch_index: batch, prediction: "x".repeat(MIB - 100) })}\n`;
const CONTENT = Buffer.from([0, 1, 2, 3].map(line).join(""));
const NAMED: Pick<Part, "name" | "rows" | "bytes" | "sha256" | "unpacked_bytes"> = {
  ...{ name: "part-0", rows: 4, bytes: CONTENT.length, unpacked_bytes: null },
  sha256: createHash("sha256").update(CONTENT).digest("hex"),
};

describe("the check of a part", () => {
  it("stops between two chunks, and closes the object, when nobody wants it any more", async () => {
    const { store, seen } = storeWith(CONTENT);
    const found = new OutputCheck(store, "").part(NAMED);
    expect(await found.next()).toEqual({ done: false, value: undefined });
    expect(seen).toEqual({ read: MIB / 4, open: 1 });
    await found.return({ path: "", rows: 0, bytes: 0, differences: [] });
    expect(seen).toEqual({ read: MIB / 4, open: 0 });
  });

  it("says what differs from what was written", async () => {
    const { store } = storeWith(CONTENT);
    const check = new OutputCheck(store, "");
    const checked = async (named: typeof NAMED) => {
      const found = check.part(named);
      for (;;) {
        const { done, value } = await found.next();
        if (done) return value;
      }
    };
    expect(await checked(NAMED)).toMatchObject({ rows: 4, differences: [] });
    const longer = { ...NAMED, bytes: CONTENT.length - 1 };
    expect((await checked(longer)).differences.at(-1)).toBe(
      `it has more than the ${longer.bytes} bytes that were written`,
    );
    expect((await checked({ ...NAMED, rows: 5 })).differences).toEqual([
      "batch 0 comes after batch 3",
      "rows: the manifest says 5, the part has 4",
    ]);
  });

  it.each([null, 9])(
    "reads no more than was written of a part without an end (unpacked: %s)",
    async (unpacked_bytes) => {
      const row = Buffer.from('{"batch_index":0,"prediction":1}\n');
      let read = 0;
      const object = {
        read: async (target: Buffer, offset: number, position: number, length: number) => {
          for (let i = 0; i < length; i++) target[offset + i] = row[(position + i) % row.length]!;
          read += length;
          // Stops in the end, if the reader does not.
          if (read > 20 * MIB) throw new Error("it was read beyond its length");
          return length;
        },
        close: async () => {},
      };
      const endless = { open: async () => object } as unknown as ObjectStore;
      const bytes = row.length * 100_000;
      const found = await checkedPart(endless, { ...NAMED, bytes, unpacked_bytes });
      expect(found.differences).toHaveLength(1);
      expect(read).toBeLessThanOrEqual(bytes + 1);
    },
  );
});

async function checkedPart(store: ObjectStore, named: typeof NAMED): Promise<CheckedPart> {
  const found = new OutputCheck(store, "").part(named);
  for (;;) {
    const { done, value } = await found.next();
    if (done) return value;
  }
}
