/** Certificates that sign themselves, for servers of a test. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { TlsFiles } from "../../src/gateway/connections/tls-context.ts";

const P256 = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

export const RSA = ["-newkey", "rsa:2048", "-nodes"];

/** Makes `cert.pem` in the directory, and `key.pem` unless it is there. */
export function makeCertificate(directory: string, name = "quern", newKey = P256): TlsFiles {
  const tls = { cert: join(directory, "cert.pem"), key: join(directory, "key.pem") };
  const key = existsSync(tls.key) ? ["-key", tls.key] : [...newKey, "-keyout", tls.key];
  const owner = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"];
  execFileSync("openssl", ["req", "-x509", ...key, ...owner, "-out", tls.cert], { stdio: "ignore" });
  return tls;
}
