/** The one form in which this repository keeps JSON: two spaces, keys as given, a newline at the end. */
export const jsonText = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`
