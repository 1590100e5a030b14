/** Kubeconfigs as people have them. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { podAccess, renewedToken } from "../../src/kubernetes/cluster-access.ts";
import { readKubeconfig } from "../../src/kubernetes/kubeconfig.ts";

const FILE = "/home/ann/.kube/config";
const config = (cluster: string, user: string) => `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {${cluster}}}]
users: [{name: u, user: {${user}}}]
contexts: [{name: x, context: {cluster: c, user: u, namespace: ml}}]
current-context: x
`;
const SERVER = "server: 'https://k.example:6443'";
const read = (text: string) => readKubeconfig(text, FILE, (path) => `text of ${path}`);

it("reads a token and the certificate in the file", async () => {
  const access = read(config(`${SERVER}, certificate-authority-data: ${btoa("PEM")}`, "token: secret"));
  expect([access.server, access.ca, access.namespace]).toEqual(["https://k.example:6443", "PEM", "ml"]);
  expect(await access.credentials(false)).toMatchObject({ token: "secret" });
});

it("reads a client certificate from files beside the kubeconfig", async () => {
  const user = "client-certificate: me.crt, client-key: /keys/me.key";
  const access = read(config(`${SERVER}, certificate-authority: ca.crt`, user));
  expect(access.ca).toBe("text of /home/ann/.kube/ca.crt");
  expect(await access.credentials(false)).toMatchObject({
    cert: "text of /home/ann/.kube/me.crt",
    key: "text of /keys/me.key",
  });
});

it.each([
  ["current-context: 5", "has no current-context"],
  ["- 1", "is not a kubeconfig"],
  [config("server: ''", "token: t"), "has no address"],
  [config(SERVER, "exec: {command: aws}"), "fetches its credentials with a program"],
  [config(`${SERVER}, insecure-skip-tls-verify: true`, "token: t"), "would send your token to anybody"],
  [config(SERVER, "token: t").replace("user: u,", "user: other,"), 'has no user "other"'],
])("says what is wrong with %s", (text, message) => {
  expect(() => read(text)).toThrow(message);
});

it("reads a renewed token once a minute, and at once if the former one was refused", async () => {
  const directory = mkdtempSync(join(tmpdir(), "quern-token-"));
  try {
    const file = join(directory, "token");
    writeFileSync(file, "one\n");
    const credentials = renewedToken(file);
    expect(await credentials(false)).toEqual({ token: "one" });
    writeFileSync(file, "two\n");
    expect(await credentials(false)).toEqual({ token: "one" });
    expect(await credentials(true)).toEqual({ token: "two" });
    for (const [name, text] of [
      ["ca.crt", "PEM"],
      ["namespace", "ml"],
    ] as const)
      writeFileSync(join(directory, name), text);
    const env = { KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "443" };
    expect(podAccess(env, directory)).toMatchObject({
      server: "https://[fd00::1]:443",
      ca: "PEM",
      namespace: "ml",
    });
    expect(podAccess({}, directory)).toBeUndefined();
  } finally {
    rmSync(directory, { recursive: true });
  }
});
