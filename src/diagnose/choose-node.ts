// On which node a question is asked, and by which words: proxies know addresses, not pods.

import { canonicalIp } from '../lib/ip.ts'

export interface NamedPod {
  readonly namespace: string
  readonly name: string
}

/** Where the client stands in the words of explain or doctor; undefined: it is not named. */
export function placeOfClient(command: string, words: readonly string[]): number | undefined {
  const flag = words.findIndex((each) => each === '--from' || each.startsWith('--from='))
  if (flag >= 0) return words[flag] === '--from' ? flag + 1 : flag
  if (command !== 'explain') return undefined
  const takesValue = /^(--via|--family|--output|-o)$/
  const plain = words.flatMap((each, i) => (each.startsWith('-') || takesValue.test(words[i - 1] ?? '') ? [] : [i]))
  return plain.length === 2 ? plain[0] : undefined
}

/** The pod that a word names; undefined: it is an address, the node, or outside. */
export function podNamed(word: string): NamedPod | undefined {
  const text = word.replace(/^--from=/, '')
  if (text === 'node' || text === 'outside' || canonicalIp(text) !== undefined) return undefined
  const [first = '', second] = text.split('/')
  return second === undefined ? { namespace: 'default', name: first } : { namespace: first, name: second }
}

/** The words with the address in place of the pod's name. */
export function withAddress(words: readonly string[], at: number, address: string): string[] {
  return words.with(at, words[at]!.startsWith('--from=') ? `--from=${address}` : address)
}
