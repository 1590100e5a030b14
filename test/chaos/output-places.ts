/** Where the outputs of jobs go: into the server, a directory, or a bucket whose server is attacked as well. */
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { outputDirectory } from "../../src/contracts/data-layout.ts";
import type { TestServer } from "../harness/server.ts";
import type { TestS3 } from "../harness/stores.ts";
import type { OutputPlace } from "./job-plan.ts";

export class OutputPlaces {
  private readonly server: TestServer;
  private readonly bucket: TestS3;

  constructor(server: TestServer, bucket: TestS3) {
    this.server = server;
    this.bucket = bucket;
    mkdirSync(this.local, { recursive: true });
  }

  /** The `output` of a submission. */
  output(
    place: OutputPlace,
    isCompressed: boolean,
  ): { store_path: string; compression: "none" | "zstd" } | undefined {
    if (place === "none") return undefined;
    const paths = { server: "quern:", directory: `file://${this.local}`, bucket: `${this.bucket.base}/out` };
    return { store_path: paths[place], compression: isCompressed ? "zstd" : "none" };
  }

  /** The directory in which the store keeps the objects of a job as files. */
  directoryOf(place: OutputPlace, jobId: string): string {
    if (place === "server") return outputDirectory(this.server.dataDir, jobId);
    return place === "directory" ? join(this.local, jobId) : join(this.bucket.directory, "out", jobId);
  }

  /** Removes what was checked: an hour of outputs has many gigabytes. */
  remove(place: OutputPlace, jobId: string): void {
    const directory = this.directoryOf(place, jobId);
    if (existsSync(directory)) rmSync(directory, { recursive: true });
  }

  private get local(): string {
    return join(this.server.inputs, "out");
  }
}
