/** Lists and counts the jobs of all APIs for the control plane. Changes nothing. */
import type { Database } from "../../database/database.ts";
import type { JobRow } from "../records/job-rows.ts";
import { allIds, jobsByIds, pageOfIds } from "./find-jobs.ts";
import type { JobFilter } from "./job-filter.ts";

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

  /** Those of these jobs that exist, in this order. */
  byIds(ids: readonly string[]): Promise<JobRow[]> {
    return jobsByIds(this.db, ids);
  }
}
