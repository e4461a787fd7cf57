// Weights as whole places: how many of a limited number each gets.

/** The most places that a list of so many members may have. Shares are then exact to one place, and at least to 1 in 256. */
export function mostPlaces(members: number): number {
  return Math.max(256, 2 * members)
}

/**
 * How many places each gets. If the weights themselves are few enough, divided by what they have in common, these are the places:
 * then a change of one weight moves no other. Otherwise all places are given out, those that are left over to the largest remainders.
 */
export function apportion(weights: readonly number[], most = mostPlaces(weights.length)): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  if (total === 0) return weights.map(() => 0)
  if (weights.every(Number.isSafeInteger)) {
    const common = weights.reduce(commonDivisor)
    if (total / common <= most) return weights.map((weight) => weight / common)
  }
  const quotas = weights.map((weight) => (weight / total) * most)
  const places = quotas.map(Math.floor)
  const left = most - places.reduce((sum, count) => sum + count, 0)
  const byRemainder = quotas
    .map((_, i) => i)
    .sort((a, b) => quotas[b]! - places[b]! - (quotas[a]! - places[a]!) || a - b)
  for (const i of byRemainder.slice(0, left)) places[i]!++
  return places
}

function commonDivisor(a: number, b: number): number {
  while (b > 0) [a, b] = [b, a % b]
  return a
}
