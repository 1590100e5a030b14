/** An environment cannot be created because of its project: the requirements, `dependencies.sh`, or the Python. */
export class EnvironmentError extends Error {}
