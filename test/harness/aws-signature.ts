/** An AWS Signature Version 4 as any owner of the secret could make it, in unusual forms too. */
import { createHash, createHmac } from "node:crypto";
import type { Principal } from "../../src/access/permission.ts";
import { Authorization } from "../../src/gateway/door/authorization.ts";

export interface ToSign {
  accessKeyId: string;
  secret: string;
  method?: string;
  path: string;
  headers: Record<string, string>;
  /** As in `SignedHeaders`; headers that are not sent are signed as empty. */
  signedHeaders: readonly string[];
  body?: string;
  date?: Date;
  region?: string;
  service?: string;
}

/** A gateway's authorization that knows no key, and one signer: `AKID` with the secret `s3cret`. */
export function authorizationOf(principal: Principal): Authorization {
  const credentials = new Map([["AKID", { secret: "s3cret", principal }]]);
  const signatures = { credentials, scope: { regions: [], services: [] }, repeats: "reads" as const };
  const findKey = () => undefined;
  const keysVersion = () => findKey;
  const options = { findKey, keysVersion, jwt: undefined, signatures };
  return new Authorization({ ...options, gateways: 1, onUsed: () => {} });
}

/** The headers with which the request is sent. */
export function signedHeaders(request: ToSign): Record<string, string> {
  const { accessKeyId, secret, method = "POST", path, body = "", date = new Date() } = request;
  const { region = "eu-west-1", service = "execute-api" } = request;
  const moment = `${date.toISOString().replace(/[-:]|\.\d+/g, "")}`;
  const headers: Record<string, string> = { ...request.headers, "x-amz-date": moment };
  const names = request.signedHeaders;
  const lines = names.map((name) => `${name}:${Object.hasOwn(headers, name) ? headers[name] : ""}`);
  const canonical = [method, path, "", ...lines, "", names.join(";"), sha256(body)].join("\n");
  const scope = [moment.slice(0, 8), region, service, "aws4_request"];
  const key = scope.reduce<Buffer>((secretKey, part) => hmac(secretKey, part), Buffer.from(`AWS4${secret}`));
  const text = ["AWS4-HMAC-SHA256", moment, scope.join("/"), sha256(canonical)].join("\n");
  const signature = hmac(key, text).toString("hex");
  const credential = `Credential=${accessKeyId}/${scope.join("/")}`;
  const authorization = `AWS4-HMAC-SHA256 ${credential}, SignedHeaders=${names.join(";")}, Signature=${signature}`;
  return { ...headers, authorization };
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
