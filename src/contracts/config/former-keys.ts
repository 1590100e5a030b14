/**
 * Keys of Cortex 0.25 to 0.34 configurations that Quern does not support, each with its replacement. `quern check` and
 * `quern deploy` refuse by this one table. The guide must have a row for each entry; its test reads this module.
 * Arguments and classes of Python code are in python/quern_runtime/former.py.
 */

/** The guide that covers all of them. */
export const FORMER_GUIDE = "docs/guides/coming-from-cortex.md";

export interface FormerKey {
  /** Relative to the API's entry. */
  path: readonly string[];
  /** The only value that is refused. Without it, the key is refused with any value. */
  value?: string;
  /** Values besides `null` that mean nothing to Quern. A key with such a value is accepted. */
  harmless?: readonly unknown[];
  /** One sentence, without its full stop. */
  cure: string;
}

const LOAD_THEM =
  "load the models in __init__ of your class, from paths that you give in predictor.config, and remove this key";

export const FORMER_KEYS: readonly FormerKey[] = [
  {
    path: ["kind"],
    value: "AsyncAPI",
    cure: "AsyncAPI is not supported: use BatchAPI and submit each workload as a job with item_list, or RealtimeAPI with a predictor.timeout that is long enough",
  },
  {
    path: ["kind"],
    value: "TaskAPI",
    cure: "TaskAPI is not supported: use BatchAPI, move the task's code into predict(), and submit a job with one item",
  },
  {
    path: ["handler"],
    cure: "is called predictor here: rename the key to predictor, the class to PythonPredictor, and its method handle_post (or handle_batch) to predict",
  },
  {
    path: ["definition"],
    cure: "belongs to TaskAPI: rename the key to predictor, and move the task's code into predict() of class PythonPredictor",
  },
  {
    path: ["predictor", "type"],
    value: "tensorflow",
    cure: 'must be "python": load the model with tensorflow in __init__ of class PythonPredictor, call it in predict(), and add tensorflow to requirements.txt',
  },
  {
    path: ["predictor", "type"],
    value: "onnx",
    cure: 'must be "python": make an onnxruntime.InferenceSession in __init__ of class PythonPredictor, run it in predict(), and add onnxruntime to requirements.txt',
  },
  {
    path: ["predictor", "image"],
    cure: "is not supported, because workers are processes and not containers: list Python packages in requirements.txt, install the rest in dependencies.sh, and remove this key",
  },
  {
    path: ["predictor", "tensorflow_serving_image"],
    cure: "is not supported, because there is no TensorFlow Serving: load the model with tensorflow in __init__ of your class, and remove this key",
  },
  { path: ["predictor", "models"], cure: `is not supported: ${LOAD_THEM}` },
  {
    path: ["predictor", "multi_model_reloading"],
    cure: `is not supported, because models are not reloaded in the background: ${LOAD_THEM} (\`quern refresh\` loads them again)`,
  },
  {
    path: ["predictor", "model_path"],
    cure: "is not supported: move it to predictor.config.model_path, and load the model from there in __init__ of your class",
  },
  {
    path: ["predictor", "signature_key"],
    cure: "is not supported: choose the signature where your class calls the model (model.signatures[KEY]), and remove this key",
  },
  {
    path: ["predictor", "protobuf_path"],
    cure: "is not supported, because there is no gRPC: send JSON or bytes over HTTP, which predict() gets as payload, and remove this key",
  },
  {
    path: ["predictor", "log_level"],
    cure: "is not supported: call logging.getLogger().setLevel() in __init__ of your class, and remove this key",
  },
  {
    path: ["predictor", "shm_size"],
    cure: "is not supported, because workers use /dev/shm of the machine without a limit: remove this key",
  },
  {
    path: ["predictor", "dependencies"],
    cure: "is not supported, because the files have fixed names: rename the one of pip to requirements.txt and the one of shell to dependencies.sh, and remove this key",
  },
  {
    path: ["compute", "inf"],
    harmless: [0],
    cure: "must be 0, because Inferentia chips are not supported: use compute.gpu or CPUs with a model that is compiled for them, and remove this key",
  },
  {
    path: ["compute", "node_groups"],
    cure: "is not supported, because all workers run on this machine: remove this key",
  },
  {
    path: ["networking", "local_port"],
    cure: "is not supported, because all APIs share the server's port (`quern up --listen HOST:PORT`): remove this key, and call <address>/<name>",
  },
];

/** The replacement for a refused key or value; undefined if it is not refused. */
export function formerCure(path: readonly (string | number)[], value: unknown): string | undefined {
  return FORMER_KEYS.find(
    (key) => isAt(key, path) && (key.value === undefined || key.value === value) && !isHarmless(key, value),
  )?.cure;
}

/** Whether this is a former key with a harmless value, so that the key can be ignored. */
export function isIdleFormerKey(path: readonly (string | number)[], value: unknown): boolean {
  return FORMER_KEYS.some((key) => key.value === undefined && isAt(key, path) && isHarmless(key, value));
}

function isAt(key: FormerKey, path: readonly (string | number)[]): boolean {
  return key.path.length === path.length && key.path.every((name, at) => name === path[at]);
}

function isHarmless({ harmless = [] }: FormerKey, value: unknown): boolean {
  return value === null || harmless.includes(value);
}
