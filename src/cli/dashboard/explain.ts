/** `quern explain`: says why an API is slow or was, a job is stuck or a rollout is not done, and what to do. */
import { wallMs } from "../../base/clock.ts";
import { prettyJson } from "../../base/json/exact.ts";
import { type CliContext, CliError, EXIT } from "../server/context.ts";
import { asUtc, inLocalCommand, inLocalTime } from "./local-times.ts";

interface Finding {
  severity: string;
  title: string;
  evidence: string[];
  cure: string;
  command: string | null;
}

export interface ExplainOptions {
  /** A time in the past, as a person types it. */
  at?: string;
}

const COLUMNS = 80;

/** The exit code says only whether there is an answer: what is wrong is in it. */
export async function explain(
  context: CliContext,
  api: string,
  job: string | undefined,
  { at }: ExplainOptions = {},
): Promise<number> {
  const { client, output, out } = context;
  if (job !== undefined && at !== undefined)
    throw new CliError("--at is for APIs: a job keeps its own record, so leave it out", EXIT.usage);
  const path =
    job === undefined
      ? `/-/apis/${encodeURIComponent(api)}/explain`
      : `${await client.jobPath(api, job)}/explain`;
  const nowMs = wallMs();
  const query = { at: at === undefined ? undefined : asUtc(at, nowMs) };
  const { value, text } = await client.json<{ findings: Finding[] }>(path, { query });
  const shown = value.findings.map((finding) => inWords(local(finding, nowMs)));
  await out(output === "json" ? `${prettyJson(text)}\n` : `${shown.join("\n\n")}\n`);
  return EXIT.success;
}

function local(finding: Finding, nowMs: number): Finding {
  const { title, evidence, command } = finding;
  return {
    ...finding,
    title: inLocalTime(title, nowMs),
    evidence: evidence.map((line) => inLocalTime(line, nowMs)),
    command: command === null ? null : inLocalCommand(command, nowMs),
  };
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
