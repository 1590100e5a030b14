/**
 * The admin token: in the data directory with mode 0600, where the CLI on the same machine reads it. It can be replaced
 * while the server runs (docs/contract/access.md#admin-token-rotation).
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { wallMs } from "../base/clock.ts";
import { newToken } from "../base/ids.ts";
import { adminTokenFile, formerAdminTokenFile } from "../contracts/data-layout.ts";
import { ADMIN_KEY_ID, FORMER_ADMIN_KEY_ID, type StoredKey } from "../contracts/keys.ts";
import { sha256Of } from "./permission.ts";
import { sessionText } from "./sessions.ts";

/** The keys that are not in the database. */
export interface AdminKeys {
  /** The admin token, then the former one while it is valid. */
  readonly keys: readonly [StoredKey, ...StoredKey[]];
  /** Replaces the admin token, durably. The former one stays valid for `graceMs`; the one before that ends now. */
  rotate(graceMs: number): string;
}

export class AdminToken implements AdminKeys {
  private readonly dataDir: string;
  private current: StoredKey;
  private former: StoredKey | undefined;

  constructor(dataDir: string) {
    this.dataDir = dataDir;
    this.current = adminKey(ADMIN_KEY_ID, sha256Of(readOrMakeAdminToken(dataDir)), null);
    this.former = readFormer(formerAdminTokenFile(dataDir));
  }

  get keys(): readonly [StoredKey, ...StoredKey[]] {
    const { current, former } = this;
    // A crash before the rename leaves the token in use among the former ones.
    return former === undefined || former.sha256 === current.sha256 ? [current] : [current, former];
  }

  rotate(graceMs: number): string {
    const { dataDir, current } = this;
    const token = newToken();
    const file = formerAdminTokenFile(dataDir);
    let former: StoredKey | undefined;
    if (graceMs > 0) {
      const expires_time = new Date(wallMs() + graceMs).toISOString();
      former = adminKey(FORMER_ADMIN_KEY_ID, current.sha256, expires_time);
      writeDurably(dataDir, file, `${current.sha256} ${expires_time}\n`);
    } else rmSync(file, { force: true });
    writeDurably(dataDir, adminTokenFile(dataDir), `${token}\n`);
    this.former = former;
    this.current = adminKey(ADMIN_KEY_ID, sha256Of(token), null);
    return token;
  }
}

/**
 * A token must be text that a header can carry: an empty file would accept an empty header. A power cut can leave one.
 */
export function readOrMakeAdminToken(dataDir: string): string {
  const file = adminTokenFile(dataDir);
  const kept = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
  if (/^[!-~]+$/.test(kept)) return kept;
  const token = newToken();
  writeDurably(dataDir, file, `${token}\n`);
  return token;
}

/** The headers in which requests present keys and sessions. */
export interface KeyHeaders {
  authorization?: string | undefined;
  "x-api-key"?: string | undefined;
  cookie?: string | undefined;
  "x-quern-dashboard"?: string | undefined;
}

/** The key of a request: `Authorization: Bearer …` or `X-API-Key`. An empty one is none. */
export function sentKeyOf(headers: KeyHeaders): string | undefined {
  const bearer = /^Bearer +(.+)$/i.exec(headers.authorization ?? "")?.[1];
  return bearer ?? (headers["x-api-key"] || undefined);
}

/** The key of a request, or else its session, in the form of a key's text. Of several sessions one that `isKnown`. */
export function keyOf(headers: KeyHeaders, isKnown?: (text: string) => boolean): string | undefined {
  return sentKeyOf(headers) ?? sessionText(headers, isKnown);
}

function adminKey(id: string, sha256: string, expires_time: string | null): StoredKey {
  const scope = "admin" as const;
  return {
    id,
    name: null,
    sha256,
    scope,
    api: null,
    created_time: "",
    rate: null,
    expires_time,
    revoked_time: null,
  };
}

/** A file that cannot be read permits nothing. */
function readFormer(file: string): StoredKey | undefined {
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const [, sha256, expires_time] = /^([0-9a-f]{64}) (\S+)\n$/.exec(text) ?? [];
  if (sha256 === undefined || Number.isNaN(Date.parse(expires_time!))) return undefined;
  return adminKey(FORMER_ADMIN_KEY_ID, sha256, expires_time!);
}

/** Replaces the file with one that only this user can read. A power cut leaves the old one or the new one. */
function writeDurably(dataDir: string, file: string, text: string): void {
  rmSync(`${file}.new`, { force: true });
  writeFileSync(`${file}.new`, text, { mode: 0o600, flag: "wx", flush: true });
  renameSync(`${file}.new`, file);
  const directory = openSync(dataDir, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
