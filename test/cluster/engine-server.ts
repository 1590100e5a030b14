/**
 * A server whose real-time APIs are pods of the cluster (`--engine kubernetes`). It is a process of the control plane's
 * network, with the rights of the Role that `quern export kubernetes` prints.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { eventually } from "../harness/eventually.ts";
import { Postgres } from "../harness/postgres.ts";
import { TestServer } from "../harness/server.ts";
import { ADDRESS, apply, kubectl, RUN, restrictedNamespace } from "./kubectl.ts";

export const WORKER_IMAGE = "quern.test/worker:1";

export class EngineServer {
  readonly namespace: string;
  readonly server: TestServer;
  readonly postgres: Postgres;

  private constructor(namespace: string, postgres: Postgres, env: NodeJS.ProcessEnv) {
    this.namespace = namespace;
    this.postgres = postgres;
    const port = 8423;
    this.server = new TestServer({
      ...env,
      KUBECONFIG: kubeconfigFile(namespace),
      QUERN_ENGINE: "kubernetes",
      QUERN_DATABASE: postgres.url,
      QUERN_WORKER_IMAGE: WORKER_IMAGE,
      QUERN_POD_NAMESPACE: namespace,
      QUERN_POD_LISTEN: `${ADDRESS}:${port}`,
      QUERN_POD_URL: `https://${ADDRESS}:${port}`,
    });
  }

  static async start(namespace: string, env: NodeJS.ProcessEnv = {}): Promise<EngineServer> {
    apply(restrictedNamespace(namespace));
    const postgres = await Postgres.start();
    const engine = new EngineServer(namespace, postgres, env);
    engine.grant();
    await engine.writeKubeconfig();
    await engine.server.start();
    return engine;
  }

  async stop(): Promise<void> {
    await this.server.stop();
    this.postgres.stop();
    kubectl(["delete", "namespace", this.namespace, "--timeout=120s"]);
  }

  kubectl(...args: string[]): string {
    return kubectl(["-n", this.namespace, ...args]);
  }

  apply(object: object): void {
    apply(object);
  }

  get kubeconfig(): string {
    return kubeconfigFile(this.namespace);
  }

  /** `kubectl auth can-i` as whoever has the token. */
  canI(token: string, ...args: string[]): string {
    const config = join(RUN, `${this.namespace}-token.kubeconfig`);
    const admin = readFileSync(join(RUN, "admin.kubeconfig"), "utf8");
    writeFileSync(config, admin.replace(/token: [\w.-]+/, `token: ${token}`));
    return execFileSync("kubectl", ["--kubeconfig", config, "auth", "can-i", ...args], { encoding: "utf8" });
  }

  /** The names of an API's pods that are not leaving. */
  pods(api: string): string[] {
    return this.podNames(`quern.dev/api=${api}`);
  }

  /** The names of the pods with these labels that are not leaving. */
  podNames(labels: string): string[] {
    const found = this.kubectl("get", "pods", "-l", labels, "-o", "json");
    const { items } = JSON.parse(found) as { items: { metadata: Record<string, string> }[] };
    const living = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    return living.map(({ metadata }) => metadata.name!).sort();
  }

  /** Deploys one real-time API. */
  deploy(
    api: object,
    predictor: string,
    options: { wait?: boolean; files?: Record<string, string> } = {},
  ): string {
    const kind = "RealtimeAPI";
    const entry = { kind, predictor: { path: "predictor.py" }, compute: { cpu: "50m" }, ...api };
    const files = { "quern.yaml": JSON.stringify([entry]), "predictor.py": predictor, ...options.files };
    return this.server.deploy(files, options);
  }

  predict(api: string, payload: unknown): Promise<Response> {
    return this.server.fetch(`/${api}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(payload),
    });
  }

  /** Waits until `quern get API` says this. */
  async untilApi(api: string, wanted: RegExp): Promise<string> {
    let out = "";
    await eventually(
      `quern get ${api} says ${wanted}`,
      async () => {
        const authorization = `Bearer ${readFileSync(join(this.server.dataDir, "admin-token"), "utf8").trim()}`;
        out = await (await this.server.fetch(`/-/apis/${api}`, { headers: { authorization } })).text();
        return wanted.test(out);
      },
      120_000,
      () => out,
    );
    return out;
  }

  /** The Role, its binding and the ServiceAccount of the export, without the pod. */
  private grant(): void {
    const { out } = this.server.cli([
      ...["export", "kubernetes", "--namespace", this.namespace, "--engine", "kubernetes"],
      ...["--database-secret", "database"],
    ]);
    const objects = parseAllDocuments(out).map((document) => document.toJS() as { kind: string });
    for (const object of objects)
      if (["ServiceAccount", "Role", "RoleBinding"].includes(object.kind)) apply(object);
  }

  private async writeKubeconfig(): Promise<void> {
    const token = this.kubectl("create", "token", "quern", "--duration=8h");
    const admin = readFileSync(join(RUN, "admin.kubeconfig"), "utf8");
    writeFileSync(kubeconfigFile(this.namespace), admin.replace(/token: [\w.-]+/, `token: ${token}`));
  }
}

function kubeconfigFile(namespace: string): string {
  return join(RUN, `${namespace}.kubeconfig`);
}
