/** Makes the admin token once, in the data directory with mode 0600. The CLI on the same machine reads it. */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { newToken } from "../base/ids.ts";
import { adminTokenFile } from "../contracts/data-layout.ts";

/**
 * A token must be text that a header can carry: an empty file would accept an empty header. A power cut can leave one.
 */
export function readOrMakeAdminToken(dataDir: string): string {
  const file = adminTokenFile(dataDir);
  const kept = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
  if (/^[!-~]+$/.test(kept)) return kept;
  const token = newToken();
  rmSync(`${file}.new`, { force: true });
  writeFileSync(`${file}.new`, `${token}\n`, { mode: 0o600, flag: "wx", flush: true });
  renameSync(`${file}.new`, file);
  return token;
}

/** The key of a request: `Authorization: Bearer …` or `X-API-Key`. An empty one is none. */
export function keyOf(headers: {
  authorization?: string | undefined;
  "x-api-key"?: string | undefined;
}): string | undefined {
  const bearer = /^Bearer +(.+)$/i.exec(headers.authorization ?? "")?.[1];
  return bearer ?? (headers["x-api-key"] || undefined);
}
