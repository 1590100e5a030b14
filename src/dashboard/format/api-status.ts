/** The word that the table and the page of an API say of it. Pure. */
interface Known {
  status: string;
  paused_time: string | null;
  /** Of its requests, which may fail although it is live. */
  trouble: string | null;
}

export function apiStatus({ status, paused_time, trouble }: Known): string {
  if (paused_time !== null) return "paused";
  return status === "live" ? (trouble ?? status) : status;
}
