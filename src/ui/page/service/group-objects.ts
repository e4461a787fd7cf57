// Groups kernel objects by hook and chain; a rule that several packets meet appears once.

import type { KernelObject } from '../../protocol.ts'

export interface HookGroup {
  readonly key: string
  readonly hook: string
  readonly family: 4 | 6
  readonly places: readonly { readonly place: string; readonly rules: readonly RuleGroup[] }[]
}

export interface RuleGroup {
  readonly rule: string
  readonly comment: string | null
  /** More than one only if each found elements. */
  readonly objects: readonly KernelObject[]
}

/** In the order in which packets meet them. */
export function groupByHook(objects: readonly KernelObject[]): HookGroup[] {
  return groupBy(objects, ({ family, hook }) => `${family} ${hook}`).map(([key, own]) => ({
    key,
    hook: own[0]!.hook,
    family: own[0]!.family,
    places: groupBy(own, ({ place }) => place).map(([place, here]) => ({ place, rules: groupRules(here) })),
  }))
}

function groupRules(objects: readonly KernelObject[]): RuleGroup[] {
  const keyOf = ({ id, rule, comment, found }: KernelObject) => (found.length === 0 ? id : `${rule}\n${comment ?? ''}`)
  return groupBy(objects, keyOf).map(([, same]) => {
    const { rule, comment } = same[0]!
    return { rule, comment, objects: same }
  })
}

function groupBy<Each>(list: readonly Each[], keyOf: (each: Each) => string): [string, Each[]][] {
  const groups = new Map<string, Each[]>()
  for (const each of list) {
    const key = keyOf(each)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [each])
    else group.push(each)
  }
  return [...groups]
}
