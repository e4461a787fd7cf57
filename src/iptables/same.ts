// Whether rules that were read back are those that were planned.

import type { RuleText } from './types.ts'

/** Whether two rules say the same, whatever the order in which a version of iptables prints their parts. */
export function sameRule(a: RuleText, b: RuleText): boolean {
  return a === b || (a.length === b.length && orderless(a) === orderless(b))
}

export function sameRules(a: readonly RuleText[], b: readonly RuleText[]): boolean {
  return a.length === b.length && a.every((rule, i) => sameRule(rule, b[i]!))
}

/** The target of a rule. */
export function targetOf(rule: RuleText): string | undefined {
  return /(?:^| )-j (\S+)/.exec(rule)?.[1]
}

/** The comment of a rule. */
export function commentOf(rule: RuleText): string | undefined {
  const [, quoted, plain] = /--comment (?:"([^"]*)"|(\S+))/.exec(rule) ?? []
  return quoted ?? plain
}

/** A key that rules share when they differ in the order of their parts only. */
export function orderless(rule: RuleText): string {
  return rule
    .split(/ (?=(?:! )?-[sdiopmj] )/)
    .sort()
    .join(' ')
}
