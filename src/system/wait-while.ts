/**
 * Waits for another thread to change a word from this value; false when that takes too long. To be woken says nothing: the
 * thread may have been held up, and wakes for what it did before.
 */
export function waitWhile(words: Int32Array, at: number, value: number, patienceMs: number): boolean {
  const endMs = performance.now() + patienceMs
  while (Atomics.load(words, at) === value) {
    const leftMs = endMs - performance.now()
    if (leftMs <= 0) return false
    Atomics.wait(words, at, value, leftMs)
  }
  return true
}
