/** Fifty submissions of one key, or dry runs, that look for a file which a slow store does not have: they list in turn. */

import { setMaxListeners } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CHECK_PARALLEL_LISTINGS, CHECKS_OF_A_SENDER_MAX } from "../../src/contracts/limits/submissions.ts";
import { serverOver } from "../harness/answering-stores.ts";
import { eventually } from "../harness/eventually.ts";
import { peakMiB, resetPeak } from "../harness/peak-memory.ts";
import { OBEDIENT } from "../harness/projects.ts";
import type { TestServer } from "../harness/server.ts";
import { longestTurnOf } from "../harness/turns.ts";

const entry = (key: string) => `<Contents><Key>${key}</Key><Size>1</Size></Contents>`;
const ENTRIES = Array.from({ length: 1000 }, (_, i) => entry(`${i}${"k".repeat(900)}`)).join("");
/** A megabyte of keys, after which there are more. */
const pageOf = (prefix: string, token: number) =>
  `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>${token}</NextContinuationToken>${ENTRIES.replaceAll("<Key>", `<Key>${prefix}`)}</ListBucketResult>`;
const LISTED = CHECKS_OF_A_SENDER_MAX * CHECK_PARALLEL_LISTINGS;
const FOUND = `<ListBucketResult>${entry("found")}</ListBucketResult>`;

describe("fifty checks of one key on a listing without a match", () => {
  /** The prefix of each page that was asked for. */
  let asked: string[] = [];
  /** Pages that are sent together. */
  const due = new Set<() => void>();
  const sending = setInterval(() => {
    for (const send of due) send();
    due.clear();
  }, 100);
  const store = createServer((request, response) => {
    response.setHeader("content-type", "application/xml");
    if (request.url!.startsWith("/small")) return response.end(FOUND);
    const prefix = new URL(request.url!, "http://store").searchParams.get("prefix")!;
    asked.push(prefix);
    const page = pageOf(prefix, asked.length);
    due.add(() => response.end(page));
  });
  let server: TestServer;
  let longestTurn: ReturnType<typeof longestTurnOf>;
  let [many, other] = ["", ""];
  beforeAll(async () => {
    server = await serverOver(store);
    longestTurn = longestTurnOf(server);
    await server.start(longestTurn.env);
    const api = (name: string) => `- name: ${name}\n  kind: BatchAPI\n  predictor: {path: p.py}\n`;
    server.deploy({ "quern.yaml": api("jobs") + api("others"), "p.py": OBEDIENT }, { wait: false });
    [many, other] = [await keyOf("jobs"), await keyOf("others")];
    // Loads the client of S3.
    expect((await post("/others?dryRun=true", other, ["s3://small/"])).status).toBe(200);
  });
  afterAll(async () => {
    await server.stop();
    clearInterval(sending);
    store.close();
    store.closeAllConnections();
  });

  const keyOf = async (api: string) => {
    const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    const answer = await server.post(
      "/-/keys",
      { scope: "submit", api },
      { authorization: `Bearer ${token}` },
    );
    return ((await answer.json()) as { key: string }).key;
  };
  const post = (address: string, key: string, store_paths: string[], signal?: AbortSignal) =>
    server.fetch(address, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({
        workers: 1,
        file_path_lister: { store_paths, excludes: ["**k"], batch_size: 1 },
      }),
      signal: signal ?? null,
    });

  it.each([
    ["submissions", "/jobs"],
    ["dry runs", "/jobs?dryRun=true"],
  ])(
    "are few at the store, in the memory and in a turn: %s",
    async (what, address) => {
      const controller = server.child("controller");
      const left = new AbortController();
      setMaxListeners(0, left.signal);
      asked = [];
      resetPeak(controller);
      const checks = Array.from({ length: 50 }, (_, check) => {
        const prefixes = Array.from({ length: 8 }, (_, i) => `s3://large/${what}/${check}/${i}/`);
        return post(address, many, prefixes, left.signal);
      });
      const ended = Promise.allSettled(checks);
      const pages = () => asked.filter((prefix) => prefix.startsWith(what));
      await eventually("they list", () => pages().length > 0);
      const headers = { authorization: `Bearer ${other}` };
      expect((await server.fetch("/others", { headers })).status).toBe(200);
      expect((await post("/others", other, ["s3://small/"])).status).toBe(200);
      await eventually("they have listed for a while", () => pages().length > 150, 120_000);
      left.abort();
      await ended;
      // 5 pages of each. All would ask for the first pages of 40 prefixes.
      const first = new Set(pages().slice(0, 5 * LISTED));
      expect(first.size).toBeLessThanOrEqual(2 * LISTED);
      // The limits are generous because the machine may be busy: it takes 100 ms, to load the client of S3, and 360 MiB.
      expect(longestTurn.ms()).toBeLessThan(300);
      expect(peakMiB(controller)).toBeLessThan(700);
    },
    180_000,
  );
});
