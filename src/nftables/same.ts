// Whether two objects of a table are the same, for those that were read back from the kernel.

import type { Chain, Element, NftSet, Rule } from './types.ts'

/** Texts and handles do not count: a rule that was read back has no text. */
export function sameRules(a: readonly Rule[], b: readonly Rule[]): boolean {
  return a.length === b.length && a.every((rule, i) => ruleIdentity(rule) === ruleIdentity(b[i]!))
}

/** The same, in any order. */
export function sameRulesInAnyOrder(a: readonly Rule[], b: readonly Rule[]): boolean {
  if (a.length !== b.length) return false
  const left = new Set(a.map(ruleIdentity))
  return left.size === a.length && b.every((rule) => left.has(ruleIdentity(rule)))
}

export function sameHook(a: Chain, b: Chain): boolean {
  return JSON.stringify(hookOf(a)) === JSON.stringify(hookOf(b))
}

/** Whether two elements with the same key say the same. */
export function sameValue(a: Element, b: Element): boolean {
  return a.data === b.data && a.verdict?.chain === b.verdict?.chain && a.verdict?.code === b.verdict?.code
}

/** Whether a set can stay as it is. */
export function sameSet(a: NftSet, b: NftSet): boolean {
  return setIdentity(a) === setIdentity(b)
}

function ruleIdentity(rule: Rule): string {
  const bigintToString = (_key: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value)
  const expressions = rule.expressions.map((each) => sortedEntries(each.kind === 'counter' ? NOTHING_COUNTED : each))
  return `${rule.comment ?? ''}\0${JSON.stringify(expressions, bigintToString)}`
}

/** What packets have counted makes no other rule of it. */
const NOTHING_COUNTED = { kind: 'counter' } as const

/** Independent of the order in which the fields were written down. */
function sortedEntries(object: object): unknown[] {
  return Object.entries(object)
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
}

function hookOf({ hook }: Chain): unknown {
  return hook === undefined ? null : [hook.type, hook.hook, hook.priority, hook.policy ?? 'accept']
}

function setIdentity(set: NftSet): string {
  return JSON.stringify([
    set.key,
    set.data ?? null,
    set.interval,
    set.dynamic,
    set.timeless ?? false,
    set.comment ?? null,
  ])
}
