/** `quern describe API`: shows everything that the server knows about one API. */
import { isCollection, parseDocument, Scalar, visit } from "yaml";
import { parseExact, stringifyExact } from "../base/json/exact.ts";
import { memberText } from "../base/json/spans.ts";
import { SecretNames } from "../contracts/secrets.ts";
import { type ApiState, apiRow, historyTable, predictionsTable } from "./api-tables.ts";
import { type CliContext, EXIT } from "./server/context.ts";
import { table } from "./terminal/table.ts";

export async function describeApi({ client, output, out }: CliContext, name: string): Promise<number> {
  const { value: api, text } = await client.json<ApiState>(`/-/apis/${encodeURIComponent(name)}`);
  if (output === "json") {
    await out(`${text}\n`);
    return EXIT.success;
  }
  const sections = [
    `${api.name} (${api.kind})`,
    ...(api.kind === "RealtimeAPI" ? [apiRow(api), predictionsTable(api), replicas(api)] : []),
    ...(api.requested_because === undefined
      ? []
      : [
          `${api.requested_replicas} replica${api.requested_replicas === 1 ? "" : "s"}: ${api.requested_because}`,
        ]),
    ...(api.message === undefined ? [] : [`why: ${api.message}`]),
    `endpoint: ${api.endpoint}`,
    historyTable(api),
    `configuration\n${asYaml(shownSpec(memberText(text, "spec")))}`,
  ];
  await out(`${sections.filter((section) => section !== "").join("\n\n")}\n`);
  return EXIT.success;
}

/** Secrets are hidden, because other people may see the screen. `-o json` shows them. */
function shownSpec(json: string): string {
  return stringifyExact(new SecretNames().hideInSpec(parseExact(json)));
}

/** Converts JSON to block-style YAML. Numbers stay as they were written. */
function asYaml(json: string): string {
  const document = parseDocument(json, { intAsBigInt: true });
  // For example, a name of more than 1,024 characters.
  if (document.errors.length > 0) return json;
  visit(document, (_key, node) => {
    if (isCollection(node)) node.flow = false;
    else if (node instanceof Scalar) delete node.type;
  });
  return document.toString().trimEnd();
}

function replicas({ replicas: all }: ApiState): string {
  if (all.length === 0) return "";
  const rows = all.map(({ worker_id, state, pid, is_up_to_date }) => [
    worker_id,
    state,
    is_up_to_date ? "yes" : "no",
    String(pid),
  ]);
  return table(["replica", "state", "up-to-date", "process"], rows);
}
