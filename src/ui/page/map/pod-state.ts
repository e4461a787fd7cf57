// The state of a pod in a word or two.

import type { ServiceInfo } from '../../protocol.ts'
import { targetOf, type Target } from './targets.ts'

export interface PodState {
  readonly kind: 'good' | 'off' | 'bad'
  /** '' for a healthy pod. */
  readonly word: string
}

const FAILS = { none: '', refuse: 'refuses', hang: 'hangs', die: 'died', slow: 'slow' } as const

/** `ejectedOn`: the nodes whose proxies have ejected it. `failing`: what its clients meet now, `refused 3/s`. */
export function podState({ pod }: Pick<Target, 'pod'>, ejectedOn: readonly string[], failing = ''): PodState {
  const words = [ejectedOn.length > 0 ? 'ejected' : '', failing]
  if (failing !== '')
    return {
      ...podState({ pod }, ejectedOn),
      kind: 'bad',
      word: [pod === null ? '' : FAILS[pod.fail], ...words].filter(Boolean).join(', '),
    }
  if (pod === null) return say(words, 'good')
  words.unshift(FAILS[pod.fail])
  if (pod.terminating) return say([...words, 'terminating'], 'off')
  if (pod.fail !== 'none' || ejectedOn.length > 0) return say(words, 'bad')
  if (!pod.ready) return say([...words, pod.phase === 'Running' ? 'not ready' : pod.phase.toLowerCase()], 'off')
  return say(words, 'good')
}

function say(words: readonly string[], kind: PodState['kind']): PodState {
  return { kind, word: words.filter((word) => word !== '').join(', ') }
}

/** The nodes on which a target is ejected, by its id. */
export function ejections(services: readonly ServiceInfo[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, Set<string>>()
  for (const { ports } of services) {
    for (const backend of ports.flatMap(({ backends }) => backends)) {
      if (backend.ejectedOn.length === 0) continue
      const id = targetOf(backend)
      const nodes = found.get(id) ?? new Set()
      for (const node of backend.ejectedOn) nodes.add(node)
      found.set(id, nodes)
    }
  }
  return new Map([...found].map(([id, nodes]) => [id, [...nodes]]))
}
