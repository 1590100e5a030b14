/** Secrets are hidden, by names and in texts. */
import { describe, expect, it } from "vitest";
import { hideInText, SecretNames } from "../../src/contracts/secrets.ts";

describe("a name", () => {
  const names = new SecretNames(["license", "PIN code"]);
  it.each([
    ...[
      "password",
      "dbPassword",
      "DB_PASSWORD",
      "db-password-2",
      "AWSSecretAccessKey",
      "aws_secret_access_key",
    ],
    ...["hf_token", "authToken", "apiKey", "API_KEY", "apikey", "clientSecret", "private_key", "sentry_dsn"],
    ...["passwords", "api_keys", "privateKeys", "token_1", "DB_PASSWORD2", "accesskeys"],
    ...["connectionString", "license", "licenseKey", "pinCode", "pin_code"],
  ])("%s names a secret", (name) => expect(names.has(name)).toBe(true));

  it.each([
    ...["max_tokens", "tokenizer", "token_count", "author", "key", "keys", "monkey", "primary_key", "signal"],
    ...["passes", "pin", "code", "compass", ""],
    ...["passWord", "dbToken x", "api", "keyApi", "sécret", "code pin"],
  ])("%s names no secret", (name) => expect(names.has(name)).toBe(false));

  it("may be given in any script, with words that end in s", () => {
    const more = new SecretNames(["ΟΔΟΣ", "pass codes"]);
    expect(["ΟΔΟΣ", "my-οδος", "pass_codes", "my.pass.codes"].map((name) => more.has(name))).not.toContain(
      false,
    );
    expect(["ΟΔΟ", "pass code", "passCodess"].map((name) => more.has(name))).not.toContain(true);
  });
});

describe("a text", () => {
  it.each([
    ["https://user:pw@host/x", "https://***@host/x"],
    ["see postgres://u:p@h and http://h/a@b", "see postgres://***@h and http://h/a@b"],
    [
      "https://b/k?X-Amz-Credential=a%2Fb&X-Amz-Signature=ff&x=1",
      "https://b/k?X-Amz-Credential=***&X-Amz-Signature=***&x=1",
    ],
    ["https://b/k?sv=1&sig=abc%3D#f", "https://b/k?sv=1&sig=***#f"],
    ["Authorization: Bearer abcdefgh123", "Authorization: Bearer ***"],
    ["basic dXNlcjpwdw==", "basic ***"],
    [`the key quern_${"a".repeat(32)}`, "the key quern_***"],
    ["a bearer of news", "a bearer of news"],
    ["basic statistics of Basic authentication", "basic statistics of Basic authentication"],
    ["postgres://u:p@ss@host/x", "postgres://***@host/x"],
    ["postgresql://svc:hunter/2#x@db.internal/app", "postgresql://***@db.internal/app"],
    ["redis://:a?b@h/0,redis://:c/d@i/0", "redis://***@h/0,redis://***@i/0"],
    ["http://host:8080/list?of=a@b.c", "http://host:8080/list?of=a@b.c"],
    ["http://host/a:b@c http://host:8080#@", "http://host/a:b@c http://host:8080#@"],
    [
      "AWS4-HMAC-SHA256 Credential=AKID/20261123/r/s3/aws4_request, SignedHeaders=host, Signature=ff",
      "AWS4-HMAC-SHA256 Credential=***, SignedHeaders=host, Signature=***",
    ],
    ["SharedKey account:c2ln/+=, see SharedKey", "SharedKey ***, see SharedKey"],
    ["x-amz-security-token: IQoJb3 and more", "x-amz-security-token: *** and more"],
    ['{"AWSAccessKeyId":"AKID","Code":"x"}', '{"AWSAccessKeyId":"***","Code":"x"}'],
    ["<AWSAccessKeyId>AKID</AWSAccessKeyId>", "<AWSAccessKeyId>***</AWSAccessKeyId>"],
    ["<StringToSign>AWS4\n2026\nff</StringToSign>", "<StringToSign>***</StringToSign>"],
    ["used following string to sign: 'GET\n\nx'.", "used following string to sign: '***'."],
    ["the Signature does not match the StringToSign", "the Signature does not match the StringToSign"],
  ])("%s", (given, shown) => expect(hideInText(given)).toBe(shown));

  it("of any kind is scanned in one pass", () => {
    const long = ["://", "?sig=", "Bearer ", "quern_", "a:", "aaaa", "Signature=", "SharedKey a"].map(
      (part) => part.repeat(200_000 / part.length),
    );
    const startMs = performance.now();
    for (const text of long) hideInText(text);
    expect(performance.now() - startMs).toBeLessThan(5_000);
  });
});
