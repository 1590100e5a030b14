/** How many tokens wait for the keys of their issuer at once. */
import { beforeEach, describe, expect, it } from "vitest";
import type { Principal } from "../../../src/access/permission.ts";
import { TOKENS_WAITING_MAX } from "../../../src/contracts/limits/authorization.ts";
import { WaitingTokens } from "../../../src/gateway/door/waiting-tokens.ts";

const SIGNER: Principal = { id: "jwt:a", permissions: [], rate: null };

async function turns(count: number): Promise<void> {
  for (let n = 0; n < count; n++) await new Promise((resolve) => setImmediate(resolve));
}

describe("tokens that wait for their issuer", () => {
  let end: ((fault?: Error) => void)[];
  let waiting: WaitingTokens;
  const jwt = {
    verify: () =>
      new Promise<Principal>((resolve, reject) =>
        end.push((fault) => (fault === undefined ? resolve(SIGNER) : reject(fault))),
      ),
  };

  beforeEach(() => {
    [end, waiting] = [[], new WaitingTokens()];
  });

  /** Resolves with the errors of those that were refused at once. */
  async function verify(count: number, owner: (each: number) => string): Promise<string[]> {
    const refused: string[] = [];
    for (let each = 0; each < count; each++)
      waiting.verify(jwt, "token", owner(each)).catch((error: Error) => refused.push(error.message));
    await turns(TOKENS_WAITING_MAX);
    return refused;
  }

  it("of one address leave a third of the places to others", async () => {
    const refused = await verify(TOKENS_WAITING_MAX, () => "10.0.0.1");
    expect(refused).toHaveLength(TOKENS_WAITING_MAX - end.length);
    expect(end.length).toBe(Math.floor((2 * TOKENS_WAITING_MAX) / 3));
    expect(await verify(1, () => "10.0.0.2")).toEqual([]);
  });

  it("of many addresses are bounded", async () => {
    const refused = await verify(TOKENS_WAITING_MAX + 5, String);
    expect(end).toHaveLength(TOKENS_WAITING_MAX);
    expect(refused).toEqual(Array(5).fill(expect.stringContaining("try again in a second")));
  });

  it("make place when they are verified, or refused", async () => {
    await verify(TOKENS_WAITING_MAX, String);
    const [first, second] = end;
    first!();
    second!(new Error("wrong"));
    await turns(1);
    expect(await verify(3, (each) => `later ${each}`)).toHaveLength(1);
  });

  it("are verified a few in each turn of the event loop, and all addresses take turns", async () => {
    const begun: string[] = [];
    const noted = (owner: string) => ({
      verify: async () => {
        begun.push(owner);
        return SIGNER;
      },
    });
    for (let n = 0; n < 500; n++) void waiting.verify(noted("many"), "token", "10.0.0.1");
    void waiting.verify(noted("one"), "token", "10.0.0.2");
    await turns(2);
    expect(begun).toContain("one");
    expect(begun.length).toBeLessThan(20);
    await turns(500);
    expect(begun).toHaveLength(501);
  });
});
