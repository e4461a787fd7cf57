// Log lines take any value: this is how values become text, without ever throwing.

/** A value in klog's text: strings quoted, numbers plain, the rest as JSON. */
export function formatLogValue(value: unknown): string {
  if (typeof value === 'string' || value instanceof Error) return escapeControls(JSON.stringify(messageOfValue(value)))
  if (value === undefined || value === null) return '<nil>'
  return jsonOf(value)
}

/**
 * Characters that a terminal or a log reader acts upon, as JSON writes them: escape sequences, carriage returns, and what
 * Unicode calls line ends. Tabs stay.
 */
export function escapeControls(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/** The message of an error with the messages of its causes; other values as text. */
export function messageOfValue(value: unknown): string {
  if (typeof value === 'string') return value
  if (!(value instanceof Error)) return jsonOf(value)
  // Most of our errors repeat their cause's message, as Go's do. Only what is not yet said is added.
  let text = value.message === '' ? value.name : value.message
  let cause = value.cause
  for (let depth = 0; cause instanceof Error && depth < 8; depth++, cause = cause.cause) {
    if (!text.includes(cause.message)) text += `: ${cause.message}`
  }
  return text
}

/** JSON of anything: maps, sets, errors and bigints included. */
export function jsonOf(value: unknown): string {
  try {
    return escapeControls(JSON.stringify(value, replaceUnprintable) ?? String(value))
  } catch {
    return escapeControls(JSON.stringify(String(value)))
  }
}

function replaceUnprintable(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Map) return Object.fromEntries(value)
  if (value instanceof Set) return [...value]
  if (value instanceof Error) return messageOfValue(value)
  return value
}
