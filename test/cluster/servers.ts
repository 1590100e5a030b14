/** The servers of `quern export kubernetes --replicas 2 --state` in a namespace, with PostgreSQL and S3 beside the cluster. */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ApiClient } from "../../src/kubernetes/api-client.ts";
import { type KubernetesObject, pathOf } from "../../src/kubernetes/resources.ts";
import { eventually } from "../harness/eventually.ts";
import { Postgres } from "../harness/postgres.ts";
import { processes } from "../harness/processes.ts";
import { root } from "../harness/server.ts";
import { startS3, type TestS3 } from "../harness/stores.ts";
import type { JobView } from "../harness/views.ts";
import { adminClient } from "./cluster-client.ts";
import { WORKER_IMAGE } from "./engine-server.ts";
import { ADDRESS, apply, kubectl, kubectlBeside, RUN, restrictedNamespace } from "./kubectl.ts";

/** The cluster of the tests has no DNS, so that the Service has an address that is known before. */
const SERVICE = "10.96.84.21";

export class Servers {
  readonly namespace: string;
  readonly postgres: Postgres;
  readonly s3: TestS3;
  private readonly client: ApiClient = adminClient();
  readonly url = `http://${SERVICE}:8420`;
  /** Of scope `admin`. */
  key = "";

  private constructor(namespace: string, postgres: Postgres, s3: TestS3) {
    this.namespace = namespace;
    this.postgres = postgres;
    this.s3 = s3;
  }

  /** Starts PostgreSQL and S3. */
  static async prepare(namespace: string): Promise<Servers> {
    const postgres = await Postgres.start(`-c listen_addresses=127.0.0.1,${ADDRESS}`);
    postgres.admit("10.0.0.0/8");
    return new Servers(namespace, postgres, await startS3(ADDRESS));
  }

  /** Resolves once one is active and the other one waits. */
  async start(): Promise<void> {
    const { namespace, postgres, s3 } = this;
    apply(restrictedNamespace(namespace));
    this.secret("database", { url: postgres.url.replace("127.0.0.1", ADDRESS) });
    this.secret("store", { ...s3.env, AWS_REGION: "us-east-1" });
    apply(this.exported());
    this.kubectl("rollout", "status", "deployment/quern", "--timeout=120s");
    await eventually("one is active", async () => (await this.active()).length === 1, 60_000);
    const [active] = await this.active();
    this.key = this.kubectl("exec", active!, "-c", "quern", "--", "cat", "/var/lib/quern/data/admin-token");
    // The Service's address leads to it only once kube-proxy has read the label too.
    const isReached = async () => (await this.fetch("/-/readyz").catch(() => undefined))?.status === 200;
    await eventually("it is reached through the Service", isReached, 60_000);
    this.key = this.quern("keys", "create", "--scope", "admin").trim();
  }

  async stop(): Promise<void> {
    this.client.close();
    try {
      kubectl(["delete", "namespace", this.namespace, "--timeout=120s", "--ignore-not-found"]);
    } finally {
      this.postgres.stop();
      await this.s3.stop();
    }
  }

  kubectl(...args: string[]): string {
    return kubectl(["-n", this.namespace, ...args]);
  }

  /** For commands under load. */
  beside(...args: string[]): Promise<string> {
    return kubectlBeside(["-n", this.namespace, ...args]);
  }

  /** Runs the command line of this checkout against the active one; throws unless it ends well. */
  quern(...args: string[]): string {
    const env = { ...process.env, NO_COLOR: "1", QUERN_HOST: this.url, QUERN_API_KEY: this.key };
    const program = join(root, "bin", "quern");
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], {
      encoding: "utf8",
      env,
    });
    if (status !== 0) throw new Error(`quern ${args.join(" ")} ended with ${status}: ${stdout}${stderr}`);
    return stdout;
  }

  deploy(files: Record<string, string>): void {
    const project = join(RUN, `project-${this.namespace}`);
    mkdirSync(project, { recursive: true });
    for (const [name, text] of Object.entries(files)) writeFileSync(join(project, name), text);
    this.quern("deploy", project, "--wait");
  }

  /** The pods with the label of the active server. */
  async active(): Promise<string[]> {
    const query = { labelSelector: "app.kubernetes.io/name=quern,quern.dev/active=true" };
    const path = pathOf("Pod", this.namespace);
    const { items } = await this.client.get<{ items: KubernetesObject[] }>(path, query);
    return items.map(({ metadata }) => metadata.name);
  }

  /** The controller in a pod, as a process of this machine. */
  controllerOf(pod: string): number {
    const isThere = (pid: number) =>
      readFileSync(`/proc/${pid}/environ`, "utf8").includes(`QUERN_POD_NAME=${pod}\0`);
    const found = processes().find(({ pid, command }) => command.includes("__controller") && isThere(pid));
    if (found === undefined) throw new Error(`pod ${pod} has no controller`);
    return found.pid;
  }

  fetch(path: string, init: { method?: string; body?: string } = {}): Promise<Response> {
    const headers = {
      authorization: `Bearer ${this.key}`,
      connection: "close",
      "content-type": "application/json",
    };
    return fetch(this.url + path, { ...init, headers, signal: AbortSignal.timeout(5_000) });
  }

  async submit(api: string, job: object): Promise<string> {
    const response = await this.fetch(`/${api}`, { method: "POST", body: JSON.stringify(job) });
    const answer = (await response.json()) as { job_id: string };
    if (response.status !== 200) throw new Error(`submission refused: ${JSON.stringify(answer)}`);
    return answer.job_id;
  }

  /** Waits until `isSo` for the job, also while no server is active. */
  async jobIs(api: string, id: string, what: string, isSo: (job: JobView) => boolean): Promise<JobView> {
    let last: JobView | undefined;
    const look = async () => {
      const response = await this.fetch(`/${api}/${id}`).catch(() => undefined);
      if (response?.status === 200) last = ((await response.json()) as { job_status: JobView }).job_status;
      return last !== undefined && isSo(last);
    };
    await eventually(`job ${id} ${what}`, look, 120_000, () => JSON.stringify(last));
    return last!;
  }

  private secret(name: string, stringData: object): void {
    apply({ apiVersion: "v1", kind: "Secret", metadata: { name, namespace: this.namespace }, stringData });
  }

  private exported(): string {
    const size = ["--cpus", "0.1", "--memory", "256Mi", "--storage", "1Gi", "--replicas", "2"];
    const images = [
      "--image",
      "quern.test/quern:1",
      "--engine",
      "kubernetes",
      "--worker-image",
      WORKER_IMAGE,
    ];
    const places = [
      "--database-secret",
      "database",
      "--state",
      "s3://bucket/quern",
      "--state-secret",
      "store",
    ];
    const yaml = this.quern(
      "export",
      "kubernetes",
      "--namespace",
      this.namespace,
      ...size,
      ...images,
      ...places,
    );
    return yaml
      .replace(/(kind: Service\n[\s\S]*?\nspec:\n)/, `$1  clusterIP: ${SERVICE}\n`)
      .replace(
        /^( *)- name: QUERN_ENGINE$/gm,
        (line, indent) =>
          `${indent}- name: QUERN_POD_URL\n${indent}  value: https://${SERVICE}:8423\n${line}`,
      );
  }
}
