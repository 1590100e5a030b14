/** What tests read of jobs and APIs in the responses of the control plane. */

export interface JobView {
  created_time: string;
  job_id: string;
  status: string;
  total_batch_count?: number;
  batches_in_queue: number;
  batch_metrics: { succeeded: number; failed: number; avg_time_per_batch?: number };
  worker_counts?: Record<string, number>;
  start_time?: string;
  end_time?: string;
  round?: number;
  round_time?: string;
  reason?: {
    code: string;
    message: string;
    hint?: string;
    evidence?: {
      batch_index?: number;
      signal?: string;
      out_of_memory?: string;
      peak_memory_bytes?: number;
      last_lines?: string[];
    };
  };
  queued_time?: string;
  paused_time?: string;
  priority?: number;
  waiting?: string;
  output?: { batches: number; rows: number; bytes: number; has_manifest: boolean };
  config: unknown;
}

export interface ApiView {
  api_id: string;
  status: string;
  message?: string;
  up_to_date_replicas: number;
  requested_replicas: number;
  requested_because?: string;
  replicas: { pid: number; state: string; is_up_to_date: boolean }[];
  history: { api_id: string }[];
}
