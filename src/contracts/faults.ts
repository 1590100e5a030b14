/** Describes an exception of user code in one line, for a status or a message. */
export function describeFault(fault: { type: string; message: string }): string {
  return fault.message === "" ? fault.type : `${fault.type}: ${fault.message}`;
}
