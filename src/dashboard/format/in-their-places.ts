/** The newest rows in the places that they had before. A row that is gone stays as it was, and new ones come last. Pure. */
export function inTheirPlaces<Row>(
  before: readonly Row[],
  now: readonly Row[],
  keyOf: (row: Row) => string,
): Row[] {
  const byKey = new Map(now.map((row) => [keyOf(row), row]));
  const known = before.map((row) => {
    const newest = byKey.get(keyOf(row));
    byKey.delete(keyOf(row));
    return newest ?? row;
  });
  return [...known, ...byKey.values()];
}
