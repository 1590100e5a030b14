/** The one pod of `quern export kubernetes` in a namespace, and the server in it. */
import { spawnSync } from "node:child_process";
import { chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../harness/eventually.ts";
import { root } from "../harness/server.ts";
import type { JobView } from "../harness/views.ts";
import { apply, kubectl, RUN, restrictedNamespace, volume } from "./kubectl.ts";

const QUERN = join(root, "bin", "quern");
/** The user of the container. */
const USER = 1000;
const POD = "quern-0";

export class Pod {
  readonly namespace: string;
  private address = "";
  private token = "";

  constructor(namespace: string) {
    this.namespace = namespace;
  }

  /** Makes the namespace and its volume. */
  prepare(): void {
    apply(restrictedNamespace(this.namespace));
    const directory = join(RUN, `volume-${this.namespace}`);
    mkdirSync(directory, { recursive: true });
    chownSync(directory, USER, USER);
    apply(volume(this.namespace, directory));
  }

  /** Applies what the command prints, as `change` returns it, after `prepare`. Resolves when the pod is ready. */
  async start(options: readonly string[] = [], change = (yaml: string) => yaml): Promise<void> {
    const image = ["--image", "quern.test/quern:1"];
    const size = ["--cpus", "1", "--memory", "1Gi", "--storage", "1Gi"];
    const exported = ["export", "kubernetes", "--namespace", this.namespace, ...image, ...size, ...options];
    apply(change(this.quern(exported)));
    await eventually("there is a pod", () => this.uid !== "");
    this.waitUntilReady();
    this.address = `http://${this.kubectl(["get", "service", "quern", "-o", "jsonpath={.spec.clusterIP}"])}:8420`;
    this.token = this.exec("cat", "/var/lib/quern/data/admin-token");
  }

  private waitUntilReady(): void {
    try {
      this.kubectl(["wait", "--for=condition=Ready", `pod/${POD}`, "--timeout=120s"]);
    } catch (error) {
      const state = this.kubectl(["describe", "pod", POD]);
      const logs = ["first-key", "quern"].map((container) => this.logs(container)).join("\n");
      throw new Error(`${POD} is not ready\n${state}\n${logs}`, { cause: error });
    }
  }

  /** The end of a container's output; a container that has not begun has none. */
  private logs(container: string): string {
    try {
      return this.kubectl(["logs", POD, "-c", container, "--tail=20"]);
    } catch (error) {
      return (error as Error).message;
    }
  }

  kubectl(args: readonly string[]): string {
    return kubectl(["-n", this.namespace, ...args]);
  }

  exec(...command: string[]): string {
    return this.kubectl(["exec", POD, "-c", "quern", "--", ...command]);
  }

  /** Runs the command line of this checkout against the server; throws unless it ends well. */
  quern(args: readonly string[]): string {
    const env = { ...process.env, NO_COLOR: "1", QUERN_HOST: this.address, QUERN_API_KEY: this.token };
    const { status, stdout, stderr } = spawnSync(process.execPath, [QUERN, ...args], {
      encoding: "utf8",
      env: this.address === "" ? process.env : env,
    });
    if (status !== 0) throw new Error(`quern ${args.join(" ")} ended with ${status}: ${stdout}${stderr}`);
    return stdout;
  }

  predict(api: string, payload: unknown, key?: string): Promise<Response> {
    return this.fetch(`/${api}`, { method: "POST", body: JSON.stringify(payload), key });
  }

  fetch(
    path: string,
    init: { method?: string; body?: string; key?: string | undefined } = {},
  ): Promise<Response> {
    const { key = this.token, ...rest } = init;
    const headers = {
      authorization: `Bearer ${key}`,
      connection: "close",
      "content-type": "application/json",
    };
    return fetch(this.address + path, { ...rest, headers });
  }

  async submit(api: string, job: object): Promise<string> {
    const response = await this.fetch(`/${api}`, { method: "POST", body: JSON.stringify(job) });
    const answer = (await response.json()) as { job_id: string };
    if (response.status !== 200) throw new Error(`submission refused: ${JSON.stringify(answer)}`);
    return answer.job_id;
  }

  async job(api: string, id: string): Promise<JobView> {
    const answer = (await (await this.fetch(`/${api}/${id}`)).json()) as { job_status: JobView };
    return answer.job_status;
  }

  /** Waits until `isSo` for the job, also while the pod is away. */
  async jobIs(api: string, id: string, what: string, isSo: (job: JobView) => boolean): Promise<JobView> {
    let last: JobView | undefined;
    await eventually(
      `job ${id} ${what}`,
      async () => {
        last = await this.job(api, id).catch(() => last);
        return last !== undefined && isSo(last);
      },
      240_000,
      () => JSON.stringify(last),
    );
    return last!;
  }

  get node(): string {
    return this.kubectl(["get", "pod", POD, "-o", "jsonpath={.spec.nodeName}"]);
  }

  /** How often its container was started again. */
  get restarts(): number {
    const count = "{.status.containerStatuses[0].restartCount}";
    return Number(this.kubectl(["get", "pod", POD, "-o", `jsonpath=${count}`]));
  }

  get uid(): string {
    return this.kubectl(["get", "pod", POD, "--ignore-not-found", "-o", "jsonpath={.metadata.uid}"]);
  }

  /** Ends the pod, and resolves when the next one has come. */
  async replace(...options: string[]): Promise<void> {
    const before = this.uid;
    this.kubectl(["delete", "pod", POD, ...options]);
    await eventually("there is another pod", () => !["", before].includes(this.uid), 120_000);
    this.waitUntilReady();
  }

  /** Ends it and all that is in the namespace, so that another test may have its CPUs. */
  end(): void {
    kubectl(["delete", "namespace", this.namespace, "--timeout=120s"]);
  }
}
