/** `quern explain`: says why an API is slow, a job is stuck or a rollout is not done, and what to do. */
import { prettyJson } from "../../base/json/exact.ts";
import { type CliContext, EXIT } from "../server/context.ts";

interface Finding {
  severity: string;
  title: string;
  evidence: string[];
  cure: string;
  command: string | null;
}

const COLUMNS = 80;

/** The exit code says only whether there is an answer: what is wrong is in it. */
export async function explain(context: CliContext, api: string, job: string | undefined): Promise<number> {
  const { client, output, out } = context;
  const path =
    job === undefined
      ? `/-/apis/${encodeURIComponent(api)}/explain`
      : `${await client.jobPath(api, job)}/explain`;
  const { value, text } = await client.json<{ findings: Finding[] }>(path);
  await out(output === "json" ? `${prettyJson(text)}\n` : `${value.findings.map(inWords).join("\n\n")}\n`);
  return EXIT.success;
}

/** At 80 columns, except words that are longer. */
export function inWords({ severity, title, evidence, cure, command }: Finding): string {
  const lines = [
    ...wrapped(`${severity}: ${title}`, "", "  "),
    ...evidence.flatMap((line) => wrapped(line, "  - ", "    ")),
    ...(cure === "" ? [] : wrapped(cure, "  what to do: ", "    ")),
    ...(command === null ? [] : [`  command: ${command}`]),
  ];
  return lines.join("\n");
}

function wrapped(text: string, first: string, rest: string): string[] {
  const lines: string[] = [];
  let line = first;
  for (const word of text.split(/\s+/).filter((each) => each !== "")) {
    const isEmpty = line === first || line === rest;
    if (!isEmpty && line.length + 1 + word.length > COLUMNS) {
      lines.push(line);
      line = rest + word;
    } else line += isEmpty ? word : ` ${word}`;
  }
  return [...lines, line];
}
