import fc from 'fast-check'
import { expect, test } from 'vitest'
import { makeService, makeSnapshot } from '../../test/support/ui-snapshots.ts'
import { applyPatch, diffValues, type Patch } from './patch.ts'

/** As it comes out at the other end of the wire. */
function sent(patch: Patch): Patch {
  return JSON.parse(JSON.stringify(patch)) as Patch
}

const value = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 3 }, fc.constantFrom(null, true, 0, 1, '', 'a', 'b'), tie('object'), tie('list')),
  object: fc.dictionary(fc.constantFrom('id', 'name', 'address', 'x', '__proto__'), tie('value'), { maxKeys: 4 }),
  list: fc.array(tie('value'), { maxLength: 5 }),
})).value

test('what was before, with the patch, is what is after: whatever the values are', () => {
  fc.assert(
    fc.property(value, value, (before, after) => {
      const patch = diffValues(before, after)
      if (patch === undefined) expect(after).toEqual(before)
      else expect(applyPatch(before, sent(patch))).toEqual(after)
    }),
  )
})

test('a backend that went and one that changed cost little, and all others stay the same objects', () => {
  const { pods, ...rest } = makeSnapshot({ pods: 100 })
  const before = { ...rest, pods, services: Array.from({ length: 50 }, (_, i) => makeService(i, pods)) }
  const services = before.services.map((service) => ({
    ...service,
    ports: service.ports.map((port) => ({
      ...port,
      backends: port.backends.flatMap((each, i) => (i === 3 ? [] : i === 7 ? [{ ...each, ready: false }] : [each])),
    })),
  }))
  const after = { ...before, services, pods: before.pods.toSpliced(3, 1) }
  const patch = sent(diffValues(before, after)!)
  expect(JSON.stringify(patch).length).toBeLessThan(JSON.stringify(after).length / 50)
  const applied = applyPatch(before, patch) as typeof after
  expect(applied).toEqual(after)
  expect(applied.nodes).toBe(before.nodes)
  expect(applied.services[4]!.ports[0]!.backends[8]).toBe(before.services[4]!.ports[0]!.backends[9])
})
