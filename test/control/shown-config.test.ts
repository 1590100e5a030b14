/** The configuration of a job without its secrets: the same as by hiding them in the parsed one, in small steps. */
import { Hono } from "hono";
import { describe, expect, it } from "vitest";
import type { Keys } from "../../src/access/keys.ts";
import { parseExact, stringifyExact } from "../../src/base/json/exact.ts";
import { encodeForwarded, FORWARDED_HEADER } from "../../src/contracts/forwarded.ts";
import { CONFIGS_OF_A_SENDER_MAX } from "../../src/contracts/limits/responses.ts";
import { SecretNames } from "../../src/contracts/secrets.ts";
import { ShownConfig } from "../../src/control/answers/shown-config.ts";
import { shownJson, shownSpecJson } from "../../src/control/answers/shown-json.ts";
import { eventually } from "../harness/eventually.ts";
import { seeded } from "../harness/random.ts";
import { leastLongestTurnMs } from "../harness/turns.ts";

const names = new SecretNames(["license", "pin code"]);
const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const letter = (n: number) => LETTERS[n % LETTERS.length]!;
/** 232 KB, as many names as a configuration can have. */
const MANY = JSON.stringify(
  Object.fromEntries(
    Array.from({ length: 29_000 }, (_, n) => [
      letter(n) + letter(Math.floor(n / 52)) + letter(Math.floor(n / 2704)),
      1,
    ]),
  ),
);

function shown(text: string, hide = shownJson): string | undefined {
  const steps = hide(text, names);
  for (;;) {
    const { value, done } = steps.next();
    if (done) return value;
  }
}

/** The same by way of a parsed value. */
function shownByParsing(text: string, hide = (value: unknown) => names.hide(value)): string | undefined {
  const exact = parseExact(text);
  const hidden = stringifyExact(hide(exact));
  return hidden === stringifyExact(exact) ? undefined : hidden;
}

describe("a configuration", () => {
  it.each([
    ["{}", undefined],
    ['{"a": 1.0, "b": [1e5, "x"]}', undefined],
    ['{"password": null, "token": true, "secret": "***"}', undefined],
    [
      '{ "password" : {"a":["}"]} , "b":12345678901234567890 }',
      '{"password":"***","b":12345678901234567890}',
    ],
    ['{"b":1,"2":["https://u:p@h"],"1":2}', '{"1":2,"2":["https://***@h"],"b":1}'],
    ['{"a":"?sig=1","b":2,"a":3}', undefined],
    ['{"a":1,"b":2,"a":"?sig=1"}', '{"a":"?sig=***","b":2}'],
    ['{"__proto__":{"pwd":1},"\\u0061\\\\":"\\ud800"}', '{"__proto__":{"pwd":"***"},"a\\\\":"\\ud800"}'],
  ])("%s is shown without secrets", (text, expected) => {
    expect(shown(text)).toBe(expected);
    expect(shownByParsing(text)).toBe(expected);
  });

  it("of any kind is shown as if it had been parsed", () => {
    const random = seeded(7);
    for (let i = 0; i < 5_000; i++) {
      const text = anyJson(random, 0);
      expect(shown(text), text).toBe(shownByParsing(text));
    }
  });

  it("of an API is shown without the values of `env`, whatever they are", () => {
    const random = seeded(8);
    const hide = (value: unknown) => names.hideInSpec(value);
    for (let i = 0; i < 2_000; i++) {
      const [config, env, other] = [anyJson(random, 0), anyJson(random, 0), anyJson(random, 0)];
      const text = `{"name":"a","predictor":{"env":${env},"config":${config}},"env":${other}}`;
      expect(shown(text, shownSpecJson), text).toBe(shownByParsing(text, hide));
    }
  });

  it("of 29,000 names takes less than 100 ms of CPU", () => {
    const cpuMs = Math.min(...[1, 2, 3].map(() => cpuMsOf(() => shown(MANY))));
    expect(cpuMs).toBeLessThan(100);
    // Parsing it, and looking at each name, took 400 ms.
    expect(Math.min(...[1, 2, 3].map(() => cpuMsOf(() => names.hide(JSON.parse(MANY)))))).toBeLessThan(100);
  });
});

describe("the configurations of jobs", () => {
  const noAdmin = { find: () => undefined } as unknown as Keys;
  const asked = () => {
    const config = new ShownConfig(noAdmin, names);
    const seen = { reads: 0, inTurn: Promise.resolve() };
    const app = new Hono()
      .onError((error, c) => c.text(error.message, 429))
      .get("/:job", async (c) => {
        let isInTurn = false;
        const read = async () => {
          seen.reads++;
          if (isInTurn) await seen.inTurn;
          isInTurn = true;
          return MANY.replace("1}", '"?sig=1"}');
        };
        return c.text(await config.ofJob(c, c.req.param("job"), read));
      });
    const ask = async (
      job: string,
      client = "a",
      outgoing: object = { destroyed: false, once: () => {} },
    ) => {
      const headers = {
        [FORWARDED_HEADER]: encodeForwarded({ baseUrl: "", listener: "main", isLocal: false, client }),
      };
      const answer = await app.request(`/${job}`, { headers }, { outgoing });
      return answer.text();
    };
    return { ask, seen };
  };

  it("are hidden in slices, however many are asked for at once", async () => {
    const jobs = Array.from({ length: 40 }, (_, n) => `j${n}`);
    const longestMs = await leastLongestTurnMs(60, async () => {
      const { ask } = asked();
      for (const text of await Promise.all(jobs.map((job) => ask(job)))) expect(text).toContain('"?sig=***"');
    });
    expect(longestMs).toBeLessThan(60);
  });

  it("are hidden once for all who ask for the same one", async () => {
    const { ask, seen } = asked();
    await Promise.all(Array.from({ length: 20 }, () => ask("j")));
    // Each request reads the text, and whoever hides it once more.
    expect(seen.reads).toBe(21);
    await ask("j");
    expect(seen.reads).toBe(21);
  });

  it("are hidden in turn by caller, however many another caller asks for", async () => {
    const { ask } = asked();
    let answered = 0;
    const ofA = Array.from({ length: 40 }, async (_, n) => {
      await ask(`a${n}`);
      answered++;
    });
    expect(await ask("b", "b")).toContain('"?sig=***"');
    // One was in its turn, and the one of b comes next.
    expect(answered).toBeLessThan(10);
    await Promise.all(ofA);
  });

  it("are refused beyond the limit of one caller", async () => {
    const { ask } = asked();
    const texts = Array.from({ length: CONFIGS_OF_A_SENDER_MAX + 10 }, () => ask("j"));
    expect(await ask("j", "b")).toContain('"?sig=***"');
    const refused = (await Promise.all(texts)).filter((text) => text.includes("wait already"));
    // The one in its turn does not wait.
    expect(refused).toHaveLength(9);
  });

  it("are not hidden for a caller that leaves", async () => {
    const { ask, seen } = asked();
    const leaves: (() => void)[] = [];
    const leaving = () => ({ destroyed: false, once: (_: string, leave: () => void) => leaves.push(leave) });
    let goOn = () => {};
    seen.inTurn = new Promise((resolve) => {
      goOn = resolve;
    });
    const first = ask("first");
    const others = Array.from({ length: 5 }, (_, n) => ask(`left${n}`, "a", leaving()));
    await eventually("all wait", () => leaves.length === 5);
    for (const leave of leaves) leave();
    expect(await Promise.all(others)).toEqual(Array(5).fill("{}"));
    goOn();
    await first;
    expect(seen.reads).toBe(7);
  });
});

function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

const NAMES = [
  "a",
  "password",
  "apiKey",
  "keys",
  "7",
  "__proto__",
  "token",
  "max_tokens",
  'q"\\',
  "é",
  "PIN-code2",
];
const VALUES = ["***", "x", "https://u:p@h", "x?sig=1", "Bearer abcdefgh123", 'é"\\\n', "\ud800", ""];
const SCALARS = ["1", "1.0", "-2e5", "12345678901234567890", "null", "true", "false"];

const below = (random: () => number, end: number) => Math.floor(random() * end);
const anyOf = (random: () => number, values: readonly string[]) => values[below(random, values.length)]!;

function anyJson(random: () => number, depth: number): string {
  const kind = below(random, depth > 3 ? 2 : 4);
  if (kind === 0) return JSON.stringify(anyOf(random, VALUES));
  if (kind === 1) return anyOf(random, SCALARS);
  const space = anyOf(random, ["", "", " ", "\n"]);
  const members = Array.from({ length: below(random, 5) }, () => {
    const value = anyJson(random, depth + 1);
    return kind === 2 ? value : `${JSON.stringify(anyOf(random, NAMES))}${space}:${space}${value}`;
  });
  const [open, close] = kind === 2 ? "[]" : "{}";
  return `${open}${space}${members.join(`${space},${space}`)}${space}${close}`;
}
