/** The error of a message, as its attributes have it: JSON with type and message, or what is left of it. Pure. */
export function letterError(attributes: Readonly<Record<string, string>>): string {
  const { error } = attributes;
  if (error === undefined) return "";
  try {
    const { type, message } = JSON.parse(error) as { type?: string; message?: string };
    return [type, message].filter((part) => part !== undefined).join(": ");
  } catch {
    // A queue of SQS bounds the attribute, so that it may be cut.
    return error;
  }
}
