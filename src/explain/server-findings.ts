/** What is wrong with the server itself: its database, its disk, its gateways. Pure. */
import type { ServerFacts } from "./facts.ts";
import { type Finding, found } from "./finding.ts";

export function serverFindings({ databaseFault, diskFault, gateways }: ServerFacts): Finding[] {
  const findings: Finding[] = [];
  if (databaseFault !== undefined)
    findings.push(
      found(
        "database_unreachable",
        "error",
        "The database cannot be reached: jobs wait, and nothing can change",
        {
          evidence: [databaseFault],
          cure: "repair the database or the connection to it; jobs continue by themselves, and predictions never stopped",
          command: "quern doctor",
        },
      ),
    );
  if (diskFault !== undefined)
    findings.push(
      found(
        "disk_full",
        "error",
        "The server's disk cannot be written: jobs wait, and submissions are refused",
        {
          evidence: [diskFault],
          cure: "free disk space; what waits continues by itself",
          command: "quern doctor",
        },
      ),
    );
  const { wanted, connected } = gateways;
  if (connected < wanted)
    findings.push(
      found("gateway_missing", "error", `${connected} of ${wanted} gateways are connected`, {
        evidence: ["requests reach fewer gateways, or wait until one is back"],
        cure: "the server starts others by itself; its log says why one ended",
        command: "quern doctor",
      }),
    );
  return findings;
}
