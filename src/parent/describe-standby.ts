/** What a server that waits for its database says on the terminal. Pure. */
import { type ActiveServer, activeServerWords } from "../contracts/messages.ts";

export function describeStandby(active: ActiveServer): string {
  const { place, since } = active;
  const where = place === "" ? "" : ` (${place})`;
  const when = since === "" ? "" : ` since ${since}`;
  return (
    `quern is a standby: ${activeServerWords(active)}${where} has the database${when}. This server takes over when that one ends.\n` +
    "  If you did not want a standby, stop this server, or give it a --database and a --state of its own."
  );
}
