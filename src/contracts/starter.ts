/** What a process that starts a server for itself tells it. */

/** The server ends when its starter does, however that ends. */
export const END_WITH_ME = "end with me";
