/**
 * Ends installations that nothing needs any more, such as those of a deleted API: `dependencies.sh` may hang or take
 * hours. What needs one is as in replicas/environment-sweep.ts, which removes environments.
 */
import { every } from "../base/loop/pulse.ts";
import type { Service } from "../base/service.ts";
import type { Database } from "../database/database.ts";
import type { PythonEnvironments } from "../engine/environments/python-environment.ts";
import { environmentUsers } from "./replicas/environment-sweep.ts";

const POLL_MS = 5_000;

export class InstallationWatch implements Service {
  private readonly db: Database;
  private readonly environments: PythonEnvironments;
  private stopPolling = () => {};
  private isReading = false;

  constructor(db: Database, environments: PythonEnvironments) {
    this.db = db;
    this.environments = environments;
  }

  async start(): Promise<void> {
    this.stopPolling = every(POLL_MS, "installations", () => this.endUnneeded());
  }

  async stop(): Promise<void> {
    this.stopPolling();
  }

  private async endUnneeded(): Promise<void> {
    // The database may be out of reach for longer.
    if (!this.environments.areInstalling || this.isReading) return;
    this.isReading = true;
    try {
      const readMs = performance.now();
      this.environments.endUnneeded(await environmentUsers(this.db), readMs);
    } finally {
      this.isReading = false;
    }
  }
}
