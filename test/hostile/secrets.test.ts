/** Secrets of configurations and of callers, and who can see them. */
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { decode } from "@msgpack/msgpack";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jobLogDirectory } from "../../src/contracts/data-layout.ts";
import { eventually } from "../harness/eventually.ts";
import { TestServer } from "../harness/server.ts";

const PREDICTOR = `
class PythonPredictor:
    def __init__(self, config):
        self.config = config
    def predict(self, payload, headers, query_params):
        if headers is None:
            for item in payload:
                if isinstance(item, dict): print(item["print"], flush=True)
            return None
        return {"headers": dict(headers), "query": dict(query_params), "password": self.config.get("db", {}).get("password")}
`;
const CONFIG =
  "{db: {password: s3cr3t-password, host: db1}, hf_token: s3cr3t-token, max_tokens: 5, pin_code: s3cr3t-pin, mirror: 'https://u:s3cr3t-url@host/x'}";
const api = (name: string, more: string) => `- name: ${name}\n  predictor: {path: predictor.py${more}}\n`;

const server = new TestServer({ QUERN_SECRET_NAMES: "pin code" });
let submitKey = "";
beforeAll(async () => {
  await server.start();
  server.deploy({
    "predictor.py": PREDICTOR,
    "quern.yaml":
      api("closed", `, config: ${CONFIG}`) +
      api("open", ", pass_credentials: true") +
      api("jobs", `, env: {HARMLESS: s3cr3t-env}, config: ${CONFIG}`).replace(
        "  predictor",
        "  kind: BatchAPI\n  predictor",
      ),
  });
  const made = await server.fetch("/-/keys", {
    method: "POST",
    body: '{"scope":"submit"}',
    headers: bearer(admin()),
  });
  submitKey = ((await made.json()) as { key: string }).key;
});
afterAll(() => server.stop());

const admin = () => readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

describe("a job's record", () => {
  const config = {
    ...{ api_key: "s3cr3t-key", big: 12345678901234567890n, ratio: "RATIO" },
    nested: [{ DB_PASSWORD: { any: "s3cr3t" } }, "s3://b/k?X-Amz-Signature=s3cr3t-signature&x=1"],
    ...{ enabled: true, secret: null },
  };
  const text = () =>
    JSON.stringify(config, (_name, value: unknown) => (typeof value === "bigint" ? "BIG" : value))
      .replace('"BIG"', "12345678901234567890")
      .replace('"RATIO"', "1.0");
  const item = `"item_list":{"items":[1],"batch_size":1}`;

  it("shows configurations without secrets to a submit key, and unchanged to an admin", async () => {
    const submitted = await server.fetch("/jobs", {
      method: "POST",
      body: `{"workers":1,${item},"config":${text()}}`,
      headers: bearer(submitKey),
    });
    const record = await submitted.text();
    // Its sender sees it unchanged.
    expect([submitted.status, record]).toEqual([200, expect.stringContaining(text())]);
    const { job_id } = JSON.parse(record) as { job_id: string };
    const read = async (key: string) => {
      const answer = await (await server.fetch(`/jobs/${job_id}`, { headers: bearer(key) })).text();
      const { api_spec } = JSON.parse(answer) as { api_spec: string };
      return {
        answer,
        spec: decode(Buffer.from(api_spec, "base64")) as { predictor: Record<string, unknown> },
      };
    };
    const below = await read(submitKey);
    expect(below.answer + JSON.stringify(below.spec)).not.toContain("s3cr3t");
    expect(below.answer).toContain(
      '"config":{"api_key":"***","big":12345678901234567890,"ratio":1.0,"nested":[{"DB_PASSWORD":"***"},"s3://b/k?X-Amz-Signature=***&x=1"],"enabled":true,"secret":null}',
    );
    expect(below.spec.predictor).toMatchObject({
      env: { HARMLESS: "***" },
      config: {
        db: { password: "***", host: "db1" },
        ...{ hf_token: "***", max_tokens: 5, pin_code: "***", mirror: "https://***@host/x" },
      },
    });
    const above = await read(admin());
    expect(above.answer).toContain(text());
    expect(above.spec.predictor).toMatchObject({
      env: { HARMLESS: "s3cr3t-env" },
      config: { hf_token: "s3cr3t-token", pin_code: "s3cr3t-pin" },
    });
    const others = await Promise.all(
      ["/jobs", `/jobs/${job_id}/events`, `/jobs/${job_id}/logs`].map(async (path) =>
        (await server.fetch(path, { headers: bearer(submitKey) })).text(),
      ),
    );
    expect(others.join("")).not.toContain("s3cr3t");
  });

  it("has a log without the secrets of requirements.txt, and with the predictor's output as it is", async () => {
    const headers = bearer(submitKey);
    const items = [{ print: "https://u:printed@host/" }];
    const body = JSON.stringify({ workers: 1, item_list: { items, batch_size: 1 } });
    const submitted = await server.fetch("/jobs", { method: "POST", body, headers });
    const { job_id: id } = (await submitted.json()) as { job_id: string };
    const read = async (accept: string) =>
      (await server.fetch(`/jobs/${id}/logs`, { headers: { ...headers, accept } })).text();
    await eventually("it has printed", async () => (await read("text/plain")).includes("printed"), 60_000);
    const requirement = "model@ http://u:s3cr3t-user@host/model-1.0.tar.gz?token=s3cr3t-token";
    appendFileSync(
      join(jobLogDirectory(server.dataDir, id), "install.log"),
      `Collecting ${requirement} (from -r requirements.txt)\nwith url: /model-1.0.tar.gz?token=s3cr3t-token\n`,
    );
    for (const accept of ["text/plain", "application/x-ndjson"]) {
      const log = await read(accept);
      expect(log).toContain("Collecting model@ http://***@host/model-1.0.tar.gz?token=*** (from");
      expect(log).not.toContain("s3cr3t");
      expect(log).toContain("https://u:printed@host/");
    }
  });

  it("is printed without secrets on a terminal, and in full as JSON", () => {
    const shown = server.cli(["describe", "closed"]).out;
    for (const part of ["s3cr3t-password", "s3cr3t-token", "s3cr3t-url"]) expect(shown).not.toContain(part);
    expect(shown).toContain("hf_token");
    expect(server.cli(["describe", "closed", "-o", "json"]).out).toContain("s3cr3t-token");
  });

  it("has no secrets from addresses in its messages", async () => {
    const path = "ftp://user:s3cr3t@host/x?sig=s3cr3t";
    const response = await server.fetch("/jobs", {
      method: "POST",
      body: JSON.stringify({ workers: 1, delimited_files: { store_paths: [path], batch_size: 1 } }),
      headers: bearer(submitKey),
    });
    const text = await response.text();
    expect([response.status, text.includes("s3cr3t")]).toEqual([400, false]);
  });
});

describe("a predictor", () => {
  const SENT = {
    ...{ "x-api-key": "s3cr3t-key", cookie: "session=s3cr3t", "x-amz-security-token": "s3cr3t-amz" },
    ...{ "proxy-authorization": "Basic s3cr3t", "x-mine": "shown" },
  };
  const ask = async (name: string) => {
    const response = await server.post(`/${name}?api_key=s3cr3t-q&Access_Token=s3cr3t-q&page=2`, "1", {
      ...SENT,
      ...bearer(admin()),
    });
    return { status: response.status, text: await response.text() };
  };

  it("does not get its callers' credentials", async () => {
    const { status, text } = await ask("closed");
    expect(status, text).toBe(200);
    expect(text).toContain('"x-mine":"shown"');
    expect(text).toContain('"query":{"page":"2"}');
    expect(text).not.toContain(admin());
    expect(text.replace("s3cr3t-password", "")).not.toContain("s3cr3t");
  });

  it("gets them if its configuration says so", async () => {
    const { status, text } = await ask("open");
    expect(status, text).toBe(200);
    for (const part of [admin(), "s3cr3t-key", "session=s3cr3t", "s3cr3t-amz", "s3cr3t-q"])
      expect(text).toContain(part);
  });
});
