/** The candidate that a mistyped word most likely meant, or undefined when none is near. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined
  // A third of the word may be wrong: enough for typing errors, too little to suggest anything for any word.
  let bestDistance = Math.floor(word.length / 3) + 1
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best ?? shortestWith(word.toLowerCase(), candidates)
}

/** A user who writes `sync-period` knows a part of the name: the shortest candidate that has it. */
function shortestWith(part: string, candidates: Iterable<string>): string | undefined {
  if (part.length < 4) return undefined
  const having = [...candidates].filter((candidate) => candidate.toLowerCase().includes(part))
  return having.sort((a, b) => a.length - b.length)[0]
}

/** How many letters must be inserted, removed, replaced or swapped to get from one word to the other. */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      let least = Math.min(replaced, last[j]! + 1, row[j - 1]! + 1)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, beforeLast[j - 2]! + 1)
      row.push(least)
    }
    beforeLast = last
    last = row
  }
  return last[b.length]!
}
