/** All jobs, with filters in the address. */
import { PageHead } from "../../parts/facts.tsx";
import { JobList } from "./job-list.tsx";

export function JobsPage() {
  return (
    <>
      <PageHead title="Jobs" />
      <JobList />
    </>
  );
}
