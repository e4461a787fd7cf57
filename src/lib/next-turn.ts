/** Resolves when the event loop has looked at what came meanwhile. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}
