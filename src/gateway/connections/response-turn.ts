/**
 * The event of a response whose turn has come: all earlier responses of its connection are complete, and it has the
 * socket now. Node emits nothing then, unless so much was written that "drain" is due.
 */
export const RESPONSE_TURN = "turn";
