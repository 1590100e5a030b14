/** What `quern doctor` found: a table, and below it what to do. */
import { type CliContext, EXIT } from "../server/context.ts";
import { table } from "./table.ts";

export interface Finding {
  check: string;
  /** `warn` does not fail the command. */
  result: "ok" | "warn" | "fail";
  detail: string;
  cure?: string;
}

/** Resolves to the exit code. */
export async function showFindings(context: CliContext, findings: readonly Finding[]): Promise<number> {
  if (context.output === "json") await context.out(`${JSON.stringify(findings, null, 2)}\n`);
  else {
    const rows = findings.map(({ check, result, detail }) => [check, result, detail]);
    await context.out(`${table(["check", "result", "found"], rows)}\n`);
    for (const { check, cure } of findings)
      if (cure !== undefined) await context.out(`\n${check}: ${cure}\n`);
  }
  return findings.some(({ result }) => result === "fail") ? EXIT.failed : EXIT.success;
}
