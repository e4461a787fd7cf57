// What answers have to look like after a change. Pure.

import type { Exchange } from './exchange.ts'

/** From all answers since the change, oldest first: the number of the one that showed it, or what is still wrong. */
export type Judge = (answers: readonly Exchange[]) => number | string

/** Any pod answers. */
export const answers: Judge = (seen) => {
  const last = seen.at(-1)!
  return 'why' in last ? last.why : seen.length - 1
}

/** Nothing answers any more. */
export const isSilent: Judge = (seen) => {
  const last = seen.at(-1)!
  return 'why' in last ? seen.length - 1 : `${last.pod} answers`
}

/**
 * Every one of these pods answers, and no other does. It was shown when each had answered that did not before, and none
 * answered that must not; asked often enough since then to be sure of that.
 */
export function answeredBy(pods: readonly string[], before: readonly string[]): Judge {
  return (seen) => {
    const clean = seen.findLastIndex((answer) => 'why' in answer || !pods.includes(answer.pod)) + 1
    const missing = pods.filter((pod) => !seen.some((answer) => podOf(answer) === pod))
    const state = `last: ${describe(seen.at(-1)!)}`
    if (missing.length > 0) return `no answer of ${missing.join(', ')}; ${state}`
    if (seen.length - clean < 3 * pods.length) return `answers of others than ${pods.join(', ')}; ${state}`
    const added = pods.filter((pod) => !before.includes(pod))
    return Math.max(clean, ...added.map((pod) => seen.findIndex((answer) => podOf(answer) === pod)))
  }
}

/** All answers of late come from one pod. */
export function stays(count = 12): Judge {
  return (seen) => {
    const pod = podOf(seen.at(-1)!)
    if (pod === undefined) return describe(seen.at(-1)!)
    const since = seen.findLastIndex((answer) => podOf(answer) !== pod) + 1
    return seen.length - since >= count ? since : `another pod than ${pod} answered too`
  }
}

/** Two answers in a row come from different pods. */
export const wanders: Judge = (seen) => {
  const [last, previous] = [seen.at(-1)!, seen.at(-2)]
  if (previous === undefined || podOf(last) === undefined) return describe(last)
  return podOf(last) === podOf(previous) ? `only ${podOf(last)} answers` : seen.length - 1
}

/** The pods see the client under this address, or under another; and only these pods answer. */
export function seesClient(address: string, wanted: 'same' | 'other', pods: readonly string[]): Judge {
  return (seen) => {
    const isRight = (answer: Exchange) =>
      !('why' in answer) && (answer.client === address) === (wanted === 'same') && pods.includes(answer.pod)
    const since = seen.findLastIndex((answer) => !isRight(answer)) + 1
    return seen.length - since >= 3 * pods.length ? since : `last: ${describe(seen.at(-1)!)}`
  }
}

function podOf(answer: Exchange): string | undefined {
  return 'why' in answer ? undefined : answer.pod
}

function describe(answer: Exchange): string {
  return 'why' in answer ? answer.why : `${answer.pod} (sees ${answer.client})`
}
