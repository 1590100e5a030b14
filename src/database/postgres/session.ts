/**
 * One connection to PostgreSQL. It classifies errors (faults.ts), and gives up the connection if a statement has no
 * answer. It never connects again: that is the link's work (link.ts).
 */
import type { Client } from "pg";
import { CannotStart } from "../../contracts/cannot-start.ts";
import {
  POSTGRES_CONNECT_MS,
  POSTGRES_IDLE_MS,
  POSTGRES_KEEPALIVE_COUNT,
  POSTGRES_KEEPALIVE_INTERVAL_S,
  POSTGRES_KEEPALIVE_S,
} from "../../contracts/limits/database.ts";
import type { SqlValue, Statements } from "../database.ts";
import { readerOf, rewritten, toParameter } from "./dialect.ts";
import { ConnectionLost, faultOf, RolledBack } from "./faults.ts";

/** How long a statement may take: until the server cancels it, and until the connection is given up. */
export interface StatementLimits {
  serverMs: number;
  clientMs: number;
}

const LEAVE_MS = 1_000;
/** Parameters of the server for a session of Quern's. Numbers without a unit are milliseconds, or seconds for keepalive. */
const PARAMETERS = {
  idle_in_transaction_session_timeout: POSTGRES_IDLE_MS,
  tcp_keepalives_idle: POSTGRES_KEEPALIVE_S,
  tcp_keepalives_interval: POSTGRES_KEEPALIVE_INTERVAL_S,
  tcp_keepalives_count: POSTGRES_KEEPALIVE_COUNT,
};

async function loadClient(): Promise<typeof import("pg")["default"]> {
  const loaded = await import("pg").catch((error: Error) => {
    throw new CannotStart(
      "no_postgres_client",
      "--database needs PostgreSQL's client, which is not installed: run `npm install pg` where Quern is installed",
      error,
    );
  });
  return loaded.default;
}

export class Session implements Statements {
  /** Called once, when the connection is gone. */
  onLost: (error: ConnectionLost) => void = () => {};
  /** Since when a statement has had no answer; undefined if none runs. */
  waitingSinceMs: number | undefined;
  private readonly client: Client;
  private readonly limits: StatementLimits;
  private lostBy: ConnectionLost | undefined;

  private constructor(client: Client, limits: StatementLimits) {
    this.client = client;
    this.limits = limits;
    client.on("error", (error) => this.lose(error));
    client.on("end", () => this.lose(new Error("the server closed the connection")));
  }

  /** Connects. Throws the client's own error if that fails. */
  static async open(url: string, limits: StatementLimits): Promise<Session> {
    const pg = await loadClient();
    const client = new pg.Client({
      connectionString: url,
      application_name: "quern",
      connectionTimeoutMillis: POSTGRES_CONNECT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: POSTGRES_KEEPALIVE_S * 1000,
      types: {
        getTypeParser: (type, format) =>
          readerOf(Number(type)) ?? pg.types.getTypeParser(type as number, format as "text"),
      },
    });
    const session = new Session(client, limits);
    try {
      await client.connect();
      await session.setParameters();
      return session;
    } catch (error) {
      session.close();
      throw error;
    }
  }

  private async setParameters(): Promise<void> {
    const all = { ...PARAMETERS, statement_timeout: this.limits.serverMs };
    for (const [name, value] of Object.entries(all)) await this.exec(`SET ${name} = ${value}`);
    // What was acknowledged must survive a crash of the server. A stricter setting stays.
    await this.exec(
      "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
    );
  }

  get isLost(): boolean {
    return this.lostBy !== undefined;
  }

  async all<T>(sql: string, params: readonly SqlValue[] = []): Promise<T[]> {
    const { rows } = await this.answered(() => this.client.query(rewritten(sql), params.map(toParameter)));
    return rows as T[];
  }

  async run(sql: string, params: readonly SqlValue[] = []): Promise<number> {
    const { rowCount } = await this.answered(() =>
      this.client.query(rewritten(sql), params.map(toParameter)),
    );
    return rowCount ?? 0;
  }

  /** Statements of PostgreSQL's own, as they are, without parameters. */
  async exec(sql: string): Promise<void> {
    await this.answered(() => this.client.query(sql));
  }

  /** Ends the connection in good order, so that the server frees its lock at once. */
  async leave(): Promise<void> {
    this.lostBy ??= new ConnectionLost(new Error("the connection was closed"));
    const timer = setTimeout(() => this.close(), LEAVE_MS);
    await this.client.end().catch(() => {});
    clearTimeout(timer);
  }

  /** Ends the connection without a farewell, which a server that hangs would not take. */
  close(): void {
    this.lostBy ??= new ConnectionLost(new Error("the connection was closed"));
    streamOf(this.client).destroy();
  }

  private async answered<T>(query: () => Promise<T>): Promise<T> {
    if (this.lostBy !== undefined) throw this.lostBy;
    this.waitingSinceMs = performance.now();
    const { clientMs } = this.limits;
    const timer = setTimeout(
      () => this.lose(new Error(`a statement had no answer for ${clientMs / 1000} s`)),
      clientMs,
    );
    try {
      return await query();
    } catch (error) {
      const fault = faultOf(error);
      if (fault === "lost") this.lose(error);
      if (this.lostBy !== undefined) throw this.lostBy;
      throw fault === "again" ? new RolledBack(error) : error;
    } finally {
      clearTimeout(timer);
      this.waitingSinceMs = undefined;
    }
  }

  /** Gives up the connection, and tells its owner. */
  lose(cause: unknown): void {
    if (this.lostBy !== undefined) return;
    this.lostBy = new ConnectionLost(cause);
    streamOf(this.client).destroy();
    this.onLost(this.lostBy);
  }
}

/** Only the socket ends a connection at once, and its type is not published. */
function streamOf(client: Client): { destroy: () => void } {
  return (client as unknown as { connection: { stream: { destroy: () => void } } }).connection.stream;
}
