/** Nodes that are asked at the same time. */
const AT_ONCE = 8

/** Does something with each, a few at a time; results in their order. */
export async function inParallel<T, U>(all: readonly T[], work: (one: T) => Promise<U>): Promise<U[]> {
  const results: U[] = []
  let next = 0
  const worker = async () => {
    for (let i = next++; i < all.length; i = next++) results[i] = await work(all[i]!)
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, all.length) }, worker))
  return results
}
