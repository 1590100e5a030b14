/** Writes docs/reference from the tables in the code. `--check` writes nothing and fails where a page differs. */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, setUp } from "./setup.mjs";

setUp();
const { z } = await import("zod");
const { SETTINGS } = await import(join(root, "dist", "settings", "settings.js"));
const { ERRORS } = await import(join(root, "dist", "contracts", "errors.js"));
const { apiSchema } = await import(join(root, "dist", "contracts", "config", "apis.js"));
const { LIMITS } = await import(join(root, "dist", "contracts", "limit-table", "limit-table.js"));
const { OPERATIONS } = await import(join(root, "dist", "contracts", "http", "operations.js"));
const { scopesOf } = await import(join(root, "dist", "contracts", "http", "operation.js"));
const { buildProgram } = await import(join(root, "dist", "command-line.js"));
const { SECRET_NAMES } = await import(join(root, "dist", "contracts", "secrets.js"));
const { CREDENTIALS, CREDENTIALS_OF_QUERY } = await import(join(root, "dist", "gateway", "payload-meta.js"));
const { LOG_EVENTS } = await import(join(root, "dist", "base", "log", "events.js"));
const { SERIES_METRICS } = await import(join(root, "dist", "contracts", "http", "series-operations.js"));
const { METRICS } = await import(join(root, "dist", "control", "metrics.js"));
const { JOB_MOVES, ROUND_MOVES } = await import(join(root, "dist", "batch", "records", "job-status.js"));

const table = (head, rows) =>
  [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");

function settings() {
  const rows = Object.values(SETTINGS).map(({ env, option, default: value, unit, help }) => [
    option === "" ? "" : `\`${option}\``,
    env === "" ? "" : `\`${env}\``,
    value === "" ? "" : `\`${value}\``,
    unit,
    help,
  ]);
  return `# Settings\n\nAn option of \`quern up\` wins over its variable, which wins over the default.\n\n${table(["option", "variable", "default", "unit", "meaning"], rows)}\n`;
}

function errors() {
  const rows = Object.entries(ERRORS).map(([code, [status, title]]) => [
    `\`${code}\``,
    String(status),
    title,
  ]);
  const intro =
    "Every error answer is `application/problem+json` (RFC 9457) with `type` (`urn:quern:error:<code>`), `title`, `status`, `detail`, `code`, `message` (the same text as `detail`), `request_id`, and for fields `errors: [{pointer, detail}]`.";
  return `# Errors\n\n${intro}\n\n${table(["code", "status", "title"], rows)}\n`;
}

function log() {
  const rows = Object.entries(LOG_EVENTS).map(([event, meaning]) => [`\`${event}\``, meaning]);
  const intro = `The server's own log goes to standard error: on a terminal lines for people, elsewhere lines of JSON. A line has \`level\` (\`debug\`, \`info\`, \`warn\` or \`error\`; \`--log-level\` sets the least), \`time\`, \`name\` (\`server\`, \`gateway\` or \`controller\`), \`pid\`, \`event\`, \`msg\` for people, and fields of its event such as \`api\`, \`job_id\` or \`request_id\`. An error is in \`err\`. If one code of 5xx responses comes more than 20 times within ten seconds, the further ones have one line, with their number as \`more\`. The line \`quern is ready at ...\` is always plain text.`;
  return `# The server's log\n\n${intro}\n\n${table(["event", "meaning"], rows)}\n`;
}

function configuration() {
  const schema = z.toJSONSchema(apiSchema, { io: "input", unrepresentable: "any" });
  const rows = fieldsOf(schema, []).map(([path, field]) => [
    `\`${path.join(".")}\``,
    typeOf(field),
    field.default === undefined ? "" : `\`${JSON.stringify(field.default)}\``,
  ]);
  const intro =
    "A YAML list of APIs. Unknown keys are errors. `name` and `predictor.path` are required; `null` is the default of every other key and map.";
  return `# Configuration fields\n\n${intro}\n\n${table(["field", "type", "default"], rows)}\n`;
}

/** The leaves of a JSON schema with their paths. */
function fieldsOf(schema, path) {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) =>
    field.properties === undefined ? [[[...path, name], field]] : fieldsOf(field, [...path, name]),
  );
}

function typeOf(field) {
  if (field.enum !== undefined) return field.enum.map((value) => `\`${value}\``).join(", ");
  if (field.const !== undefined) return `\`${field.const}\``;
  if (field.anyOf !== undefined)
    return [...new Set(field.anyOf.map(typeOf))].filter((type) => type !== "null").join(" or ");
  if (field.type !== "integer") return field.type === "object" ? "map" : (field.type ?? "");
  const most =
    field.maximum === undefined || field.maximum >= Number.MAX_SAFE_INTEGER ? "" : ` to ${field.maximum}`;
  return field.minimum === undefined || field.minimum < 0
    ? "integer"
    : `integer from ${field.minimum}${most}`;
}

function limits() {
  const rowOf = ({ what, most, error, status, effect = "the connection is closed" }) => [
    what,
    most,
    error === undefined ? (status ?? effect) : `${status} \`${error}\``,
  ];
  const sections = LIMITS.map(
    ({ title, rows }) => `## ${title}\n\n${table(["what", "at most", "beyond it"], rows.map(rowOf))}`,
  );
  const intro =
    "A request beyond a limit is refused before anything is changed; the message says what was given, what is allowed, and what to do. Messages quote no more than the beginning of what was sent.";
  return `# Limits\n\n${intro}\n\n${sections.join("\n\n")}\n`;
}

function jobStatus() {
  const arrows = Object.entries(JOB_MOVES).flatMap(([from, to]) =>
    to.map((status) => `  ${from} --> ${status}`),
  );
  const quoted = (status) => `\`${status}\``;
  const rounds = Object.entries(ROUND_MOVES).map(
    ([from, to]) => `| ${quoted(from)} | ${to.map(quoted).join(", ")} |`,
  );
  return `# Statuses of a job\n\n\`\`\`mermaid\nstateDiagram-v2\n  [*] --> status_enqueuing\n${arrows.join("\n")}\n\`\`\`\n\nA new round (redrive, resume) begins again:\n\n| from | to |\n|---|---|\n${rounds.join("\n")}\n\nRedrive leads to \`status_running\`, resume to where the job was when it ended.\n\n\`status_unknown\` is only for a record that cannot be read.\n`;
}

function commands() {
  const help = (args) =>
    spawnSync(process.execPath, [join(root, "bin", "quern"), ...args, "--help"], {
      encoding: "utf8",
      env: { ...process.env, COLUMNS: "100" },
    }).stdout.trim();
  const tree = (command, path) => [
    path,
    ...command.commands.flatMap((sub) => tree(sub, [...path, sub.name()])),
  ];
  const verbs = tree(
    buildProgram(
      async () => {},
      () => {},
    ),
    [],
  );
  const codes =
    "0 success · 1 failed · 2 usage · 3 not allowed · 4 not found · 5 conflict · 6 server unreachable · `job wait`: 10 failed, 11 completed with failures, 12 stopped, 13 timed out · 124 `--timeout` passed";
  const printed =
    "Data goes to standard output, everything else to standard error. Control characters in texts of others (logs, errors, names) are printed as their JSON escapes, such as `\\u001b` for ESC, to a terminal and to a pipe alike, because a pipe may end at a terminal. With `-o json` the values are exact: JSON escapes them by itself. `--export FILE` writes what the server sent.";
  return `# Commands\n\n${printed}\n\nExit codes: ${codes}.\n\n${verbs.map((verb) => `${`## quern ${verb.join(" ")}`.trimEnd()}\n\n\`\`\`\n${help(verb)}\n\`\`\``).join("\n\n")}\n`;
}

function http() {
  const sections = OPERATIONS.map((operation) => {
    const { method, path, about, parameters, body, answers, errors } = operation;
    const opening = scopesOf(operation).map((scope) => `\`${scope}\``);
    const rows = [
      ...parameters.map(({ name, in: place, about: meaning }) => [`${place} \`${name}\``, meaning]),
      ...(body === undefined ? [] : [["body", `\`${body.type}\``]]),
      [
        "answer",
        Object.keys(answers)
          .map((type) => `\`${type}\``)
          .join(" or "),
      ],
      ...(errors.length === 0 ? [] : [["errors", errors.map((code) => `\`${code}\``).join(" ")]]),
      ["key", opening.join(" or ") || "none"],
    ];
    return `## \`${method.toUpperCase()} ${path}\`\n\n${about}\n\n${table(["", ""], rows)}`;
  });
  const intro =
    "A prediction is `POST /<api_name>` of a real-time API with `Content-Type: application/json`; the response is what `predict()` returns. Everything else is here, and with all fields at `/-/openapi.json` and `/-/docs` of a running server. Keys go in `Authorization: Bearer KEY` or `X-API-Key: KEY`. Everything that needs a key may be answered with `rate_limited` (429): a key may have a rate, and has at most 100 open streams.";
  return `# HTTP\n\n${intro}\n\n${sections.join("\n\n")}\n`;
}

function metrics() {
  const rows = Object.entries(METRICS).map(([name, [type, help]]) => [`\`${name}\``, type, help]);
  const intro =
    "`/-/metrics` gives these in Prometheus' text format, with a key of scope `view` or `admin`. Counters of requests are of all gateways together since the controller started (the numbers of `quern get` go back two weeks and survive restarts); those of jobs survive restarts. `deploy/prometheus/rules.yaml` has alerts for them, and `deploy/grafana/dashboard.json` is a dashboard ([how](../guides/service.md#prometheus)). Labels: `api`, `status`, `state`, `reason` (an error code), `outcome`, `queue` (the hundred with the oldest messages), `process` (gateways have a `number`), `quantile`, `resource`, `class` (the first hundred of each gateway).";
  return `# Metrics\n\n${intro}\n\n${table(["metric", "type", "meaning"], rows)}\n\n${series()}`;
}

function series() {
  const rows = Object.entries(SERIES_METRICS).map(([name, [unit, help]]) => [`\`${name}\``, unit, help]);
  const intro =
    "`GET /-/series` and `quern series` give these per minute for a day, and per hour for two weeks ([rules](../contract/operations.md#series)).";
  return `## Series\n\n${intro}\n\n${table(["metric", "unit", "meaning"], rows)}\n`;
}

function secrets() {
  const names = SECRET_NAMES.map(
    (name) => `\`${name.replace("$", "")}\`${name.endsWith("$") ? " (at the end)" : ""}`,
  );
  return `# Secrets

With a key below \`admin\`, answers have \`***\` instead of these values:

- all values of \`predictor.env\`, and the values of \`predictor.config\`, of a job's \`config\` and of an application's resources under a secret's name, at any depth
  (\`null\`, \`true\` and \`false\` are shown);
- in any text: the user of a URL (\`https://user:password@host\`), signatures and tokens in a URL's query, \`Authorization\` values, what signs a request to a store, keys of Quern and the capability in a \`QUERN_API_URL\`.

The answer to a submission has \`config\` as it was sent. \`quern describe\` and \`quern job get\` hide the values under these names on a screen,
and \`-o json\` shows them to an admin key. Messages of errors and the server's logs never have secrets in URLs or keys.

A name is a secret's if its words have one of these in a row. Words are told apart by case, \`_\`, \`-\` and \`.\`: \`dbPassword\`, \`DB_PASSWORD\` and
\`db-password\` are the same two.

${names.join(", ")}

\`quern up --secret-names license,pin\` (\`QUERN_SECRET_NAMES\`) adds names. A secret under another name is not known, and what a predictor prints or
raises is its own affair (but for the capability in \`QUERN_API_URL\`, which is hidden there too): give secrets in \`predictor.env\`, and do not print them.

Predictors see their callers' credentials only with \`predictor.pass_credentials: true\`: without it \`headers\` lack ${list(CREDENTIALS)}, and
\`query_params\` also lack ${list([...CREDENTIALS_OF_QUERY].filter((name) => !CREDENTIALS.has(name)))}.
`;
}

const list = (names) => [...names].map((name) => `\`${name}\``).join(", ");

const pages = {
  "secrets.md": secrets(),
  "limits.md": limits(),
  "metrics.md": metrics(),
  "http.md": http(),
  "settings.md": settings(),
  "errors.md": errors(),
  "log.md": log(),
  "configuration.md": configuration(),
  "job-status.md": jobStatus(),
  "commands.md": commands(),
};
const isCheck = process.argv.includes("--check");
const differ = Object.entries(pages).filter(([name, text]) => {
  const file = join(root, "docs", "reference", name);
  if (!isCheck) writeFileSync(file, text);
  return isCheck && readFileSync(file, "utf8") !== text;
});
if (differ.length > 0) {
  console.error(
    `out of date: ${differ.map(([name]) => `docs/reference/${name}`).join(", ")}; run node scripts/reference.mjs`,
  );
  process.exit(1);
}
