/** One batch that runs alone on the server: which jobs may lease meanwhile, and which resume afterwards. */
import { beforeEach, describe, expect, it } from "vitest";
import { reportFaultsTo } from "../../../src/base/boundary.ts";
import { Solitude, type SolitudeMember } from "../../../src/batch/dispatch/solitude.ts";

class Job implements SolitudeMember {
  isIdle = true;
  pumped = 0;
  /** Called when the job may resume. */
  onPump: () => void = () => {};

  pump(): void {
    this.pumped++;
    this.onPump();
  }
}

describe("solitude", () => {
  let solitude: Solitude;
  let jobs: [Job, Job, Job];
  beforeEach(() => {
    solitude = new Solitude();
    jobs = [new Job(), new Job(), new Job()];
    for (const job of jobs) solitude.join(job);
  });
  const openTo = () => jobs.map((job) => solitude.isOpenTo(job));
  const pumped = () => jobs.map((job) => job.pumped);

  it("lets every job lease while no job wants to run alone", () => {
    expect(openTo()).toEqual([true, true, true]);
    solitude.hasChanged();
    expect(pumped()).toEqual([0, 0, 0]);
  });

  it("is granted at once if all jobs are idle, and then no job may lease", () => {
    expect(solitude.enter(jobs[0])).toBe(true);
    expect(openTo()).toEqual([false, false, false]);
    expect(solitude.enter(jobs[0])).toBe(false);
  });

  it("is granted once all jobs are idle; meanwhile only the waiting job may lease", () => {
    jobs[1].isIdle = false;
    expect(solitude.enter(jobs[0])).toBe(false);
    expect(openTo()).toEqual([true, false, false]);
    jobs[1].isIdle = true;
    solitude.hasChanged();
    expect(pumped()).toEqual([1, 0, 0]);
    expect(solitude.enter(jobs[0])).toBe(true);
    solitude.hasChanged();
    expect(pumped()).toEqual([1, 0, 0]);
  });

  it("is granted only once the job's own workers are idle too", () => {
    jobs[0].isIdle = false;
    expect(solitude.enter(jobs[0])).toBe(false);
  });

  it("is granted in the order of the requests; a second request of a job counts as one", () => {
    expect(solitude.enter(jobs[0])).toBe(true);
    expect(solitude.enter(jobs[2])).toBe(false);
    expect(solitude.enter(jobs[2])).toBe(false);
    expect(solitude.enter(jobs[1])).toBe(false);
    solitude.exit(jobs[0]);
    expect(pumped()).toEqual([1, 1, 1]);
    expect(openTo()).toEqual([false, false, true]);
    expect(solitude.enter(jobs[1])).toBe(false);
    expect(solitude.enter(jobs[2])).toBe(true);
    solitude.exit(jobs[2]);
    expect(openTo()).toEqual([false, true, false]);
    expect(solitude.enter(jobs[1])).toBe(true);
    solitude.exit(jobs[1]);
    expect(openTo()).toEqual([true, true, true]);
  });

  it("stays with its job when another job stops waiting", () => {
    expect(solitude.enter(jobs[0])).toBe(true);
    expect(solitude.enter(jobs[1])).toBe(false);
    solitude.exit(jobs[1]);
    expect(openTo()).toEqual([false, false, false]);
    solitude.exit(jobs[0]);
    expect(openTo()).toEqual([true, true, true]);
  });

  it("does not change when a job exits that never requested it", () => {
    expect(solitude.enter(jobs[0])).toBe(true);
    solitude.exit(jobs[1]);
    expect(openTo()).toEqual([false, false, false]);
    expect(pumped()).toEqual([0, 0, 0]);
  });

  it("ends when its job leaves; a job that has left neither delays others nor is notified", () => {
    jobs[1].isIdle = false;
    solitude.leave(jobs[1]);
    expect(solitude.enter(jobs[0])).toBe(true);
    solitude.leave(jobs[0]);
    expect(openTo()).toEqual([true, true, true]);
    expect(pumped()).toEqual([0, 0, 1]);
  });

  it("is granted to the next job although another job throws when it resumes", () => {
    const faults: string[] = [];
    reportFaultsTo((error, unit) => faults.push(`${unit}: ${error.message}`));
    expect(solitude.enter(jobs[0])).toBe(true);
    jobs[1].onPump = () => {
      throw new Error("broken");
    };
    solitude.exit(jobs[0]);
    expect(pumped()).toEqual([1, 1, 1]);
    expect(faults).toEqual(["a job beside another: broken"]);
  });
});
