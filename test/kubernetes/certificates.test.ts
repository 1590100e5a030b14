/** The certificates of workers, as OpenSSL and Node judge them. */
import { execFileSync } from "node:child_process";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, createServer } from "node:tls";
import { afterAll, describe, expect, it } from "vitest";
import { isDue, issueCertificate, makeAuthority } from "../../src/kubernetes/certificates/certificate.ts";

const directory = mkdtempSync(join(tmpdir(), "quern-certificates-"));
afterAll(() => rmSync(directory, { recursive: true }));

const NOW = new Date();
const DAY_MS = 86_400_000;
const made = makeAuthority("Quern workers of ml", NOW);
const authority = { ...made, privateKey: createPrivateKey(made.key) };
const worker = issueCertificate(authority, ["echo.ml.quern"], NOW);

function openssl(...args: string[]): string {
  return execFileSync("openssl", args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

function file(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

const ca = file("ca.pem", authority.cert);

describe("a certificate", () => {
  it("is one that OpenSSL accepts strictly, for its purpose and its name", () => {
    const path = file("worker.pem", worker.cert);
    const strict = ["verify", "-x509_strict", "-check_ss_sig", "-CAfile", ca];
    expect(openssl(...strict, ca)).toContain("OK");
    const named = [...strict, "-purpose", "sslserver", "-verify_hostname"];
    expect(openssl(...named, "echo.ml.quern", path)).toContain("OK");
    expect(() => openssl(...named, "other.ml.quern", path)).toThrow("hostname mismatch");
  });

  it("is canonical DER: OpenSSL writes the same bytes", () => {
    for (const { cert } of [authority, worker])
      expect(openssl("x509", "-in", file("any.pem", cert))).toBe(cert);
  });

  it("has the key that is given with it", () => {
    const { publicKey } = new X509Certificate(worker.cert);
    expect(new X509Certificate(worker.cert).checkPrivateKey(createPrivateKey(worker.key))).toBe(true);
    expect(publicKey.asymmetricKeyDetails?.namedCurve).toBe("prime256v1");
  });

  it("may be for addresses, of both kinds", () => {
    const { cert } = issueCertificate(authority, ["10.1.2.255", "fd00::1:8423", "quern.ml.svc"], NOW);
    const read = new X509Certificate(cert);
    expect([read.checkIP("10.1.2.255"), read.checkIP("fd00::1:8423")]).toEqual([
      "10.1.2.255",
      "fd00::1:8423",
    ]);
    expect([read.checkHost("quern.ml.svc"), read.checkIP("10.1.2.3")]).toEqual(["quern.ml.svc", undefined]);
  });

  it("cannot issue others", () => {
    const stranger = { ...worker, privateKey: createPrivateKey(worker.key) };
    const issued = file("issued.pem", issueCertificate(stranger, ["other.ml.quern"], NOW).cert);
    const chain = file("chain.pem", worker.cert);
    expect(() => openssl("verify", "-CAfile", ca, "-untrusted", chain, issued)).toThrow(/invalid CA/);
  });

  it("serves TLS 1.3 to who knows the authority, under its name only", async () => {
    const server = createServer({ ...worker, minVersion: "TLSv1.3" }, (socket) => socket.end("hello"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const outcome = (servername: string, trusted: string) =>
      new Promise<string>((resolve) => {
        const socket = connect({ port, host: "127.0.0.1", servername, ca: trusted });
        socket.on("secureConnect", () => resolve("connected")).on("error", (error) => resolve(error.message));
        socket.resume();
      });
    expect(await outcome("echo.ml.quern", authority.cert)).toBe("connected");
    expect(await outcome("other.ml.quern", authority.cert)).toContain("Hostname/IP does not match");
    expect(await outcome("echo.ml.quern", makeAuthority("stranger", NOW).cert)).not.toBe("connected");
    server.close();
  });
});

describe("a certificate is due", () => {
  const at = (days: number) => new Date(NOW.getTime() + days * DAY_MS);

  it("three months before its end", () => {
    const due = [0, 270, 280].map((days) => isDue(worker.cert, ["echo.ml.quern"], authority.cert, at(days)));
    expect(due).toEqual([false, false, true]);
  });

  it("for another name, under another authority, or if it cannot be read", () => {
    expect(isDue(worker.cert, ["echo.ml.quern", "10.0.0.1"], authority.cert, NOW)).toBe(true);
    expect(isDue(worker.cert, ["echo.ml.quern"], makeAuthority("x", NOW).cert, NOW)).toBe(true);
    expect(isDue("", ["echo.ml.quern"], authority.cert, NOW)).toBe(true);
  });
});
