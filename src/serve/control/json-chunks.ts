/**
 * The JSON text of a value, piece by piece. Down to `depth` levels each element is a piece of its own; what is deeper is written
 * at once. Iterables that are not lists are written as lists, as they go.
 */
export function* jsonChunks(value: unknown, depth: number = 4): Generator<string> {
  if (depth === 0 || typeof value !== 'object' || value === null) {
    yield JSON.stringify(value) ?? 'null'
  } else if (Symbol.iterator in value) {
    yield '['
    let isFirst = true
    for (const element of value as Iterable<unknown>) {
      if (!isFirst) yield ','
      isFirst = false
      yield* jsonChunks(element, depth - 1)
    }
    yield ']'
  } else {
    yield* objectChunks(value, depth)
  }
}

function* objectChunks(value: object, depth: number): Generator<string> {
  yield '{'
  let isFirst = true
  for (const [name, part] of Object.entries(value)) {
    if (part === undefined || typeof part === 'function') continue
    yield `${isFirst ? '' : ','}${JSON.stringify(name)}:`
    isFirst = false
    yield* jsonChunks(part, depth - 1)
  }
  yield '}'
}
