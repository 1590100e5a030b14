/** The admin token: made once, in the data directory, mode 0600; the CLI on the same machine reads it. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newToken } from "../base/ids.ts";

function adminTokenFile(dataDir: string): string {
  return join(dataDir, "admin-token");
}

export function readOrMakeAdminToken(dataDir: string): string {
  const file = adminTokenFile(dataDir);
  if (!existsSync(file)) writeFileSync(file, `${newToken()}\n`, { mode: 0o600, flag: "wx" });
  return readFileSync(file, "utf8").trim();
}

/** The key of a request: `Authorization: Bearer …` or `X-API-Key`. */
export function keyOf(headers: {
  authorization?: string | undefined;
  "x-api-key"?: string | undefined;
}): string | undefined {
  const bearer = /^Bearer +(.+)$/i.exec(headers.authorization ?? "")?.[1];
  return bearer ?? headers["x-api-key"];
}
