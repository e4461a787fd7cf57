import type { Condition } from '../apiserver/objects/meta.ts'

/** Sets a condition of a status. Its time of transition moves only when its status does. */
export function setCondition(
  status: { conditions?: Condition[] },
  claim: Omit<Condition, 'lastTransitionTime'>,
  now: string,
): void {
  const conditions = (status.conditions ??= [])
  const before = conditions.find(({ type }) => type === claim.type)
  const since = before?.status === claim.status ? (before.lastTransitionTime ?? now) : now
  const condition = { ...claim, lastTransitionTime: since }
  if (before === undefined) conditions.push(condition)
  else conditions.splice(conditions.indexOf(before), 1, condition)
}
