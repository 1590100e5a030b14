/** Lists and counts the jobs of all APIs for the control plane. Changes nothing. */
import type { JobStatus } from "../../contracts/jobs.ts";
import type { Database } from "../../database/database.ts";
import type { JobRow } from "../records/job-rows.ts";
import { type BegunJob, begunJobs } from "./begun-jobs.ts";
import { allIds, jobsByIds, pageOfIds } from "./find-jobs.ts";
import type { JobFilter } from "./job-filter.ts";
import {
  countByStatus,
  type EndedBadly,
  endedBadly,
  newestUnfinished,
  pausedApis,
  unfinishedByApi,
} from "./overview-jobs.ts";

export class FoundJobs {
  private readonly db: Database;

  constructor(db: Database) {
    this.db = db;
  }

  /** The ids of a page, newest first, whether there are more of them, and how many jobs match in all. */
  async page(
    filter: JobFilter,
    { limit, before }: { limit: number; before: string | undefined },
  ): Promise<{ ids: string[]; hasMore: boolean; count: number }> {
    const { ids, count } = await pageOfIds(this.db, filter, { limit: limit + 1, before });
    return { ids: ids.slice(0, limit), hasMore: ids.length > limit, count };
  }

  /** The ids of all that match, newest first; undefined if they are more than `most`. */
  ids(filter: JobFilter, most: number): Promise<string[] | undefined> {
    return allIds(this.db, filter, most);
  }

  /** What the overview tells about jobs: see overview-jobs.ts. */
  newestUnfinished(most: number): Promise<JobRow[]> {
    return newestUnfinished(this.db, most);
  }

  unfinishedByApi(): Promise<Map<string, number>> {
    return unfinishedByApi(this.db);
  }

  countByStatus(): Promise<Map<JobStatus, number>> {
    return countByStatus(this.db);
  }

  endedBadly(since: string, most: number): Promise<EndedBadly[]> {
    return endedBadly(this.db, since, most);
  }

  /** Those that started in a while. */
  begun(fromMs: number, toMs: number): Promise<BegunJob[]> {
    return begunJobs(this.db, fromMs, toMs);
  }

  pausedApis(): Promise<Map<string, string>> {
    return pausedApis(this.db);
  }

  /** Those of these jobs that exist, in this order. */
  byIds(ids: readonly string[]): Promise<JobRow[]> {
    return jobsByIds(this.db, ids);
  }
}
