import { describe, expect, it } from "vitest";
import { CheckPlaces } from "../../../src/batch/places/check-places.ts";
import {
  CHECKS_MAX,
  CHECKS_OF_A_SENDER_MAX,
  CHECKS_OF_AN_API_MAX,
  CHECKS_WAITING_OF_A_SENDER_MAX,
} from "../../../src/contracts/limits/submissions.ts";

/** Resolves after all due work has run. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("checks that list stores at once", () => {
  /** Checks that have a place, in the order in which they got it. */
  function placed() {
    const places = new CheckPlaces();
    const held: { sender: string; api: string; giveBack: () => void }[] = [];
    const want = async (sender: string, api: string, count: number) => {
      const checks = Array.from({ length: count }, () => {
        const over = new AbortController();
        const place = places.take({ sender, api }, over.signal);
        place.then(
          (giveBack) => giveBack && held.push({ sender, api, giveBack }),
          () => {},
        );
        return { over, place };
      });
      await settled();
      return checks;
    };
    return { places, held, want, of: (sender: string) => held.filter((one) => one.sender === sender).length };
  }

  it("of one key wait for each other, and no other key waits for them", async () => {
    const { want, of } = placed();
    await want("many", "a", 50);
    expect(of("many")).toBe(CHECKS_OF_A_SENDER_MAX);
    await want("one", "a", 1);
    expect(of("one")).toBe(1);
  });

  it("of one API leave places for those of others, and all together are few", async () => {
    const { held, want } = placed();
    for (let key = 0; key < 10; key++) await want(`a${key}`, "a", 10);
    expect(held.length).toBe(CHECKS_OF_AN_API_MAX);
    for (const api of ["b", "c", "d"]) for (let key = 0; key < 10; key++) await want(`${api}${key}`, api, 10);
    expect(held.length).toBe(CHECKS_MAX);
  });

  it("begin in turn, API by API, once a place is free", async () => {
    const { held, want, of } = placed();
    for (const api of ["a", "b"]) for (let key = 0; key < 3; key++) await want(`${api}${key}`, api, 10);
    await want("c", "c", 1);
    expect(of("c")).toBe(0);
    held[0]!.giveBack();
    held[1]!.giveBack();
    held[2]!.giveBack();
    await settled();
    expect(of("c")).toBe(1);
  });

  it("all have a place in the end", async () => {
    const { held, want } = placed();
    await want("many", "a", 50);
    await want("other", "a", 20);
    for (let at = 0; at < held.length; at++) {
      held[at]!.giveBack();
      await settled();
    }
    expect(held.length).toBe(70);
  });

  it("get no place after their end, wherever they wait", async () => {
    const { held, want, of } = placed();
    await want("a0", "a", CHECKS_OF_A_SENDER_MAX);
    await want("a1", "a", CHECKS_OF_AN_API_MAX - CHECKS_OF_A_SENDER_MAX);
    // Four of these wait among those of their API, the others for their key.
    const late = await want("late", "a", 2 * CHECKS_OF_A_SENDER_MAX);
    for (const { over } of late) over.abort();
    expect(await Promise.all(late.map(({ place }) => place))).toEqual(late.map(() => undefined));
    for (const { giveBack } of [...held]) giveBack();
    await want("late", "a", CHECKS_OF_A_SENDER_MAX);
    expect(of("late")).toBe(CHECKS_OF_A_SENDER_MAX);
  });

  it("are refused if too many of their key wait", async () => {
    const { places, want } = placed();
    await want("many", "a", CHECKS_OF_A_SENDER_MAX + CHECKS_WAITING_OF_A_SENDER_MAX);
    const over = new AbortController().signal;
    await expect(places.take({ sender: "many", api: "b" }, over)).rejects.toMatchObject({
      code: "queue_full",
    });
    expect(await places.take({ sender: "one", api: "b" }, over)).toBeTypeOf("function");
  });
});
