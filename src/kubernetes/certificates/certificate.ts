/**
 * Makes the certificates of workers, and of the server that gives them their projects: X.509 version 3 with keys on
 * P-256, signed with ECDSA and SHA-256 (RFC 5280). Each installation has an authority of its own, which issues nothing
 * else. OpenSSL judges the result in the test.
 */
import {
  createHash,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto";
import { isIP } from "node:net";
import { bits, identifier, integer, octets, sequence, set, tagged, text, time, truth } from "./der.ts";

/** A certificate and its private key, as PEM. */
export interface Certified {
  cert: string;
  key: string;
}

const COMMON_NAME = "2.5.4.3";
const SIGNATURE = sequence(identifier("1.2.840.10045.4.3.2"));
const DAY_MS = 86_400_000;
/** Clocks of nodes may be behind. */
const SKEW_MS = 60 * 60_000;
const AUTHORITY_DAYS = 3_650;
const CERTIFICATE_DAYS = 365;
/** A certificate is renewed once so much of its time is left: three months of failures are noticed. */
const RENEWED_BEFORE_MS = 90 * DAY_MS;

interface Content {
  subject: string;
  issuer: string;
  days: number;
  publicKey: KeyObject;
  extensions: readonly Buffer[];
}

/** An authority of the name. */
export function makeAuthority(name: string, now: Date): Certified {
  const { publicKey, privateKey } = newKeys();
  const extensions = [
    extension("2.5.29.19", sequence(truth()), true),
    // keyCertSign: the fifth bit of one byte, of which two are unused.
    extension("2.5.29.15", Buffer.from([0x03, 0x02, 0x02, 0x04]), true),
    extension("2.5.29.14", octets(keyId(publicKey))),
  ];
  const content = { subject: name, issuer: name, days: AUTHORITY_DAYS, publicKey, extensions };
  return { cert: signed(content, privateKey, now), key: pemOf(privateKey) };
}

/** A certificate for a server that has these names or addresses. */
export function issueCertificate(
  authority: Certified & { privateKey: KeyObject },
  names: readonly [string, ...string[]],
  now: Date,
): Certified {
  const { publicKey, privateKey } = newKeys();
  const { publicKey: issuerKey, subject: issuer } = new X509Certificate(authority.cert);
  const extensions = [
    extension("2.5.29.19", sequence(), true),
    // digitalSignature
    extension("2.5.29.15", Buffer.from([0x03, 0x02, 0x07, 0x80]), true),
    // serverAuth
    extension("2.5.29.37", sequence(identifier("1.3.6.1.5.5.7.3.1"))),
    extension("2.5.29.17", sequence(...names.map(generalName))),
    extension("2.5.29.35", sequence(tagged(0, keyId(issuerKey), true))),
  ];
  const content = {
    subject: names[0],
    issuer: commonName(issuer),
    days: CERTIFICATE_DAYS,
    publicKey,
    extensions,
  };
  return { cert: signed(content, authority.privateKey, now), key: pemOf(privateKey) };
}

/** Whether it is to be replaced: it ends soon, has other names, or another authority has issued it. */
export function isDue(cert: string, names: readonly string[], authority: string, now: Date): boolean {
  try {
    const read = new X509Certificate(cert);
    const isOurs = read.checkIssued(new X509Certificate(authority));
    const fits = names.every((name) => (isIP(name) > 0 ? read.checkIP(name) : read.checkHost(name)));
    return !isOurs || !fits || Date.parse(read.validTo) - now.getTime() < RENEWED_BEFORE_MS;
  } catch {
    return true;
  }
}

function signed(
  { subject, issuer, days, publicKey, extensions }: Content,
  key: KeyObject,
  now: Date,
): string {
  const from = new Date(now.getTime() - SKEW_MS);
  const content = sequence(
    tagged(0, integer(Buffer.from([2]))),
    integer(randomBytes(16)),
    SIGNATURE,
    nameOf(issuer),
    sequence(time(from), time(new Date(now.getTime() + days * DAY_MS))),
    nameOf(subject),
    publicKey.export({ type: "spki", format: "der" }),
    tagged(3, sequence(...extensions)),
  );
  const certificate = sequence(content, SIGNATURE, bits(sign("sha256", content, key)));
  const lines = certificate.toString("base64").match(/.{1,64}/g)!;
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

function newKeys() {
  return generateKeyPairSync("ec", { namedCurve: "P-256" });
}

function pemOf(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}

function nameOf(name: string): Buffer {
  return sequence(set(sequence(identifier(COMMON_NAME), text(name))));
}

function commonName(subject: string): string {
  return subject.replace(/^CN=/, "");
}

function generalName(name: string): Buffer {
  if (isIP(name) === 0) return tagged(2, Buffer.from(name), true);
  return tagged(7, addressBytes(name), true);
}

/** Four bytes, or sixteen. */
function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split(".").map(Number));
  const [head = "", tail = ""] = address.split("::");
  const groups = (part: string) => part.split(":").filter(Boolean);
  const middle = Array(8 - groups(head).length - groups(tail).length).fill("0");
  const all = address.includes("::") ? [...groups(head), ...middle, ...groups(tail)] : groups(head);
  return Buffer.from(
    all.flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255]),
  );
}

function extension(id: string, value: Uint8Array, isCritical = false): Buffer {
  return sequence(identifier(id), ...(isCritical ? [truth()] : []), octets(value));
}

/** The first method of RFC 5280, 4.2.1.2: the hash of the key's bits. */
function keyId(key: KeyObject): Buffer {
  const spki = createPublicKey(key.export({ type: "spki", format: "pem" })).export({
    type: "spki",
    format: "der",
  });
  // The point on P-256, uncompressed, is the end of it.
  return createHash("sha1").update(spki.subarray(-65)).digest();
}
