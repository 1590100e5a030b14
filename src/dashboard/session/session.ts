/** Who is at this browser: the session's scope decides what the pages offer. The server decides what it does. */
import { computed, signal } from "@preact/signals";
import { followLive } from "../live/live.ts";
import { ask, send } from "../server/request.ts";
import type { Session } from "../shapes.ts";

/** Undefined until the server has said it. */
export const session = signal<Session | undefined>(undefined);

export const isSignedIn = computed(() => session.value !== undefined && session.value.scope !== null);

export const mayAct = computed(() => session.value?.scope === "admin");

export async function readSession(): Promise<void> {
  session.value = await ask<Session>("/-/session");
}

/** `proof`: the one-time code of `quern ui`, or a key. Throws a Problem if it opens nothing. */
export async function signIn(proof: { code: string } | { key: string }): Promise<void> {
  await send("/-/session", { method: "POST", body: proof });
  followLive();
  await readSession();
}

export async function signOut(): Promise<void> {
  await send("/-/session", { method: "DELETE" });
  followLive();
  await readSession();
}

/** The code in the address after `#`, which no server and no log sees. It leaves the address at once. */
export function takeCode(): string | undefined {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code === null) return undefined;
  history.replaceState(null, "", location.pathname + location.search);
  return code;
}
