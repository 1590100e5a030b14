/** Frames between the server and its workers: long bodies, streams and exceptions of user code. */

/**
 * A frame's body, in bytes: large enough that the header costs nothing, small enough that other messages wait less than
 * 0.1 ms.
 */
export const FRAME_BODY_BYTES_MAX = 256 * 1024;
/**
 * How much of one long body a sender may have in flight before the receiver grants more: four frames. A worker sends
 * only 16 KiB of a stream before the first CREDIT, because pipelined streams would fill the memory of the gateway.
 */
export const STREAM_WINDOW_BYTES = 4 * FRAME_BODY_BYTES_MAX;
/**
 * What a piece of a stream uses of its window in addition to its bytes. Without it, half a million pieces of two bytes
 * would fit into a window, and each costs the gateway 10 us and 500 bytes. With it, four thousand fit.
 */
export const STREAM_PIECE_BYTES = 256;
/**
 * A worker sends a piece only while less than a window is in flight, so no more than that is untaken before a piece. The
 * frame is a margin. A worker that sends more ignores its credit, and would fill the memory of its gateway.
 */
export const STREAM_UNTAKEN_BYTES_MAX = STREAM_WINDOW_BYTES + FRAME_BODY_BYTES_MAX;
/** Pieces of a stream that arrive in one turn of the event loop are written together, about this many bytes at once. */
export const STREAM_WRITE_BYTES = 64 * 1024;
/**
 * Text that a gateway turns into the data of server-sent events in one turn of its event loop, for all its streams: up
 * to 1 ms of work, for lines of no characters. The rest waits for later turns. These 64 MB a second are more than
 * clients read.
 */
export const TEXT_OF_A_TURN_BYTES = 64 * 1024;
/**
 * A result of up to this size is copied only once, from where it was read into the response. Beyond it, a copy as a
 * string costs more than a second part in the write.
 */
export const READ_AT_ONCE_BYTES_MAX = 4096;
/** After this many frames of one read, at 2 us each, other work runs: libuv reads up to 32 times, 40,000 frames each. */
export const FRAMES_A_TURN = 1024;
/**
 * What one connection holds of incomplete bodies before only the oldest of them gets more window. Each of the others
 * adds at most a window. Eight pieces of streams of 100 MB at once then take 170 MB, not 800 MB.
 */
export const INCOMPLETE_BODIES_BYTES = 64 * 1024 * 1024;
/**
 * The head of a RESULT, in bytes: 64 KiB of headers, and 100 classes of 256 characters. It is parsed in one step, which
 * would take seconds for the head that a whole message can hold.
 */
export const RESULT_HEAD_BYTES_MAX = 256 * 1024;
/**
 * A RESULT, in bytes: a head, and a body of one frame, because a worker sends anything longer as a stream. Its frames
 * are joined, which takes 0.4 s for half a gigabyte.
 */
export const RESULT_BYTES_MAX = 1024 * 1024;
/** The largest body that is reassembled, in bytes. */
export const MESSAGE_BYTES_MAX = 512 * 1024 * 1024;
/**
 * Frames of one body, four times as many as the largest one needs. Each costs the receiver 100 bytes, however short it
 * is.
 */
export const FRAMES_OF_A_BODY_MAX = 4 * (MESSAGE_BYTES_MAX / FRAME_BODY_BYTES_MAX);
/**
 * An exception of user code: bytes of each field's JSON text as the worker sends it. python/quern_runtime/faults.py
 * cuts the fields and has the same numbers. Together they are 97 KiB: an exception always fits into a frame, and an ACK
 * has space for at least two. Nobody reads a message of 8 KiB to its end. A traceback of 24 KiB has some 150 calls. A
 * detail is a response to a client, such as a list of 500 invalid fields.
 */
export const FAULT_TYPE_BYTES_MAX = 256;
export const FAULT_MESSAGE_BYTES_MAX = 8 * 1024;
export const FAULT_TRACEBACK_BYTES_MAX = 24 * 1024;
export const FAULT_DETAIL_BYTES_MAX = 64 * 1024;
