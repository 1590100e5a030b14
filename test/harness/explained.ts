/** What the server says about an API or a job when it is asked why. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Explanation,
  explanationSchema,
  type Finding,
} from "../../src/contracts/http/explain-operations.ts";
import { eventually } from "./eventually.ts";
import type { TestServer } from "./server.ts";

/** The answer, which must be as the operation describes it. */
export async function explained(server: TestServer, api: string, job?: string): Promise<Explanation> {
  const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
  const path = job === undefined ? `/-/apis/${api}/explain` : `/${api}/${job}/explain`;
  const headers = { authorization: `Bearer ${token}`, connection: "close" };
  const response = await server.fetch(path, { headers });
  const text = await response.text();
  const heads = JSON.stringify([...response.headers]);
  if (response.status !== 200 || text === "")
    throw new Error(`${path}: ${response.status} "${text}" ${heads}`);
  return explanationSchema.parse(JSON.parse(text));
}

/** Waits until the explanation has a finding with this cause; `where` says more about it. */
export async function findingOf(
  server: TestServer,
  cause: string,
  api: string,
  job?: string,
  where: (finding: Finding) => boolean = () => true,
): Promise<Finding> {
  let last: Explanation | undefined;
  let found: Finding | undefined;
  await eventually(
    `${cause} explains ${api} ${job ?? ""}`,
    async () => {
      // A gateway that is killed breaks its connections.
      last = await explained(server, api, job).catch((error: Error) => {
        if (error instanceof TypeError) return last;
        throw error;
      });
      found = last?.findings.find((finding) => finding.cause === cause && where(finding));
      return found !== undefined;
    },
    30_000,
    () => JSON.stringify(last, undefined, 1),
  );
  return found!;
}

/** The title and the evidence as one text. */
export function said({ title, evidence }: Finding): string {
  return [title, ...evidence].join("\n");
}
