/**
 * Sends the requests that schemathesis generates from the OpenAPI document to a real server. Fails on a 5xx, and on a
 * response that the document lacks. `node scripts/schemathesis.mjs [EXAMPLES]`; installs schemathesis from PyPI into
 * .bench/schemathesis once.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root, setUp } from "./setup.mjs";

const VERSION = "4.32.5";
const PREDICTOR = `class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        if payload == ["fail"]: raise ValueError("as asked")
`;
const HOOKS = `import schemathesis
@schemathesis.serializer("application/gzip")
def gzip(context, value):
    return value if isinstance(value, bytes) else str(value).encode()

# Nothing leaves this machine: buckets and queues elsewhere become a file that is not there, and a queue here.
@schemathesis.hook
def before_call(context, case, kwargs):
    body = case.body
    if not isinstance(body, dict): return
    for files in (body.get("delimited_files"), body.get("file_path_lister")):
        if not isinstance(files, dict): continue
        for name in ("store_paths", "s3_paths"):
            if isinstance(files.get(name), list):
                files[name] = [here(path) for path in files[name]]
    for name in ("queue_dead_letter_queue", "sqs_dead_letter_queue"):
        letters = body.get(name)
        if isinstance(letters, dict) and ":sqs:" in str(letters.get("arn")): letters["arn"] = "letters"

def here(path):
    is_elsewhere = isinstance(path, str) and path.startswith(("s3://", "gs://", "az://"))
    return "file:///not-there" if is_elsewhere else path
`;
/**
 * What a schema cannot say is refused rightly: of a submission, that files exist and globs are well formed; of lists,
 * series and selections, that times are times and which filters go together.
 */
const FREER = [
  "submitJob",
  "deploy",
  "patchApis",
  "listAllJobs",
  "getSeries",
  "explainApi",
  "select",
  "actOnSelection",
];
const CONFIG = `- name: echo
  predictor: {path: predictor.py}
- name: jobs
  kind: BatchAPI
  predictor: {path: predictor.py}
`;

setUp();
const tool = install();
const work = mkdtempSync(join(tmpdir(), "quern-schemathesis-"));
const env = { ...process.env, QUERN_DATA_DIR: join(work, "data"), XDG_CONFIG_HOME: work, NO_COLOR: "1" };
delete env.QUERN_HOST;
const quern = join(root, "bin", "quern");
const server = spawn(
  process.execPath,
  [quern, "up", "--listen", "127.0.0.1:0", "--allow-local-root", prepare()],
  {
    env,
    stdio: ["ignore", "inherit", "pipe"],
  },
);
await new Promise((resolve, reject) => {
  server.stderr.on("data", (text) => String(text).includes("quern is ready") && resolve());
  server.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
});
const status = check();
server.removeAllListeners("exit").kill("SIGTERM");
await new Promise((resolve) => server.once("exit", resolve));
rmSync(work, { recursive: true, force: true });
process.exit(status);

function install() {
  const directory = join(root, ".bench", `schemathesis-${VERSION}`);
  const command = join(directory, "bin", "schemathesis");
  if (existsSync(command)) return command;
  console.log("installing schemathesis ...");
  execFileSync(process.env.QUERN_PYTHON ?? "python3", ["-m", "venv", directory]);
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", `schemathesis==${VERSION}`];
  execFileSync(join(directory, "bin", "python"), pip, { stdio: "inherit" });
  return command;
}

/** The project, and a directory of input. */
function prepare() {
  const inputs = join(work, "inputs");
  mkdirSync(inputs);
  writeFileSync(join(inputs, "lines.jsonl"), "{}\n");
  mkdirSync(join(work, "project"));
  writeFileSync(join(work, "project", "predictor.py"), PREDICTOR);
  writeFileSync(join(work, "project", "quern.yaml"), CONFIG);
  return inputs;
}

/** Deploys, runs a job with a failure so that there is data to read, and starts the tool. */
function check() {
  const run = (args, input) =>
    execFileSync(process.execPath, [quern, ...args], {
      env,
      input,
      encoding: "utf8",
      stdio: ["pipe", "pipe", "inherit"],
    });
  run(["deploy", join(work, "project"), "--wait"]);
  const job = { workers: 1, item_list: { items: ["fine", "fail"], batch_size: 1 } };
  const id = run(["job", "submit", "jobs", "-"], JSON.stringify(job)).trim();
  spawnSync(process.execPath, [quern, "job", "wait", "jobs", id], { env });
  const token = readFileSync(join(env.QUERN_DATA_DIR, "admin-token"), "utf8").trim();
  const address = readFileSync(join(env.QUERN_DATA_DIR, "address"), "utf8").trim();
  writeFileSync(join(work, "hooks.py"), HOOKS);
  writeFileSync(join(work, "schemathesis.toml"), settings(id));
  const args = ["--config-file", join(work, "schemathesis.toml"), "run", `${address}/-/openapi.json`];
  const options = [
    "-H",
    `Authorization: Bearer ${token}`,
    "--max-examples",
    process.argv[2] ?? "40",
    // The same requests each time: what fails in CI fails for what was changed. Another seed as the second argument looks further.
    "--seed",
    process.argv[3] ?? "1",
    "--no-color",
  ];
  return spawnSync(tool, [...args, ...options], {
    cwd: work,
    stdio: "inherit",
    env,
  }).status;
}

function settings(jobId) {
  return `hooks = "hooks.py"
[parameters]
"path.api" = "jobs"
"path.name" = "echo"
"path.job" = "${jobId}"
"query.follow" = false
# DELETE stops a job; its record stays, as the contract has it.
[checks]
use_after_free.enabled = false
${FREER.map(
  (id) => `[[operations]]
include-operation-id = "${id}"
checks.positive_data_acceptance.enabled = false
`,
).join("")}`;
}
