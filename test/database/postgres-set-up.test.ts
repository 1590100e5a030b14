/** What a person has set up wrong is said at the first connection; a command does not wait for a server. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectPostgres } from "../../src/database/postgres/open-postgres.ts";
import { freePort } from "../harness/faulty-proxy.ts";
import { isPostgresInstalled, Postgres, psql } from "../harness/postgres.ts";

describe.runIf(isPostgresInstalled)("an address of PostgreSQL", () => {
  let postgres: Postgres;
  let certificate: string;
  beforeAll(async () => {
    postgres = await Postgres.start();
    const data = psql(postgres.url, "SHOW data_directory");
    certificate = join(data, "server.crt");
    const names = ["-subj", "/CN=db.internal", "-addext", "subjectAltName=IP:127.0.0.1"];
    execFileSync(
      "openssl",
      ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", ...names].concat([
        "-keyout",
        join(data, "server.key"),
        "-out",
        certificate,
      ]),
      { stdio: "ignore" },
    );
    if (process.getuid!() === 0) execFileSync("chown", ["postgres", join(data, "server.key"), certificate]);
    const roles = ["scram", "md5", "clear"].map(
      (name) =>
        `SET password_encryption = '${name === "md5" ? "md5" : "scram-sha-256"}'; CREATE ROLE ${name} SUPERUSER LOGIN PASSWORD 'hush-hush';`,
    );
    psql(postgres.url, roles.join(" "));
    writeFileSync(
      psql(postgres.url, "SHOW hba_file"),
      `host all quern 127.0.0.1/32 trust
host all scram 127.0.0.1/32 scram-sha-256
host all md5 127.0.0.1/32 md5
host all clear 127.0.0.1/32 password
hostssl all secure 127.0.0.1/32 trust
`,
    );
    psql(postgres.url, "CREATE ROLE secure SUPERUSER LOGIN");
    psql(postgres.url, "ALTER SYSTEM SET ssl = on");
    psql(postgres.url, "SELECT pg_reload_conf()");
  });
  afterAll(() => postgres.stop());

  const as = (user: string, parameters = "") => `${postgres.url.replace("quern@", `${user}@`)}${parameters}`;
  const refusal = async (url: string) => {
    const error = (await connectPostgres({ url }).catch((thrown: unknown) => thrown)) as Error & {
      why?: string;
    };
    const said = JSON.stringify([error.message, error.stack, String(error.cause)]);
    expect(said).not.toMatch(/wrong-one|hush-hush/);
    expect(error.why).toBe("database_unusable");
    return error.message;
  };

  it.each(["scram", "md5", "clear"])(
    "with a wrong or missing password is refused at once (%s)",
    async (user) => {
      expect(await refusal(as(`${user}:wrong-one`))).toContain(
        `password authentication failed for user "${user}"`,
      );
      expect(await refusal(as(user))).toMatch(/password/);
      const db = await connectPostgres({ url: as(`${user}:hush-hush`) });
      await db.close();
    },
  );

  it("whose certificate is not trusted is refused at once, and serves with its authority", async () => {
    const verified = `?sslmode=verify-full&sslrootcert=${certificate}`;
    expect(await refusal(as("secure"))).toContain("no encryption");
    expect(await refusal(as("secure", "?sslmode=verify-full"))).toMatch(/self.signed certificate/);
    expect(await refusal(as("secure", verified).replace("127.0.0.1", "localhost"))).toMatch(
      /altnames|no pg_hba/,
    );
    expect(
      await refusal(as("secure", `?sslmode=verify-full&sslrootcert=${dirname(certificate)}/none`)),
    ).toContain("none");
    const db = await connectPostgres({ url: as("secure", verified) });
    expect(await db.all("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")).toEqual([{ ssl: true }]);
    await db.close();
    const unverified = await connectPostgres({ url: as("secure", "?sslmode=no-verify") });
    await unverified.close();
  });

  it("where nothing listens is refused to a command, which does not wait", async () => {
    const url = postgres.urlOf("postgres", await freePort());
    await expect(connectPostgres({ url, isImpatient: true })).rejects.toMatchObject({
      why: "database_unusable",
      message: expect.stringContaining("ECONNREFUSED"),
    });
  });
});
