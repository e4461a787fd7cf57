import { describe, expect, it } from 'vitest'
import { applyJsonPatch, JsonPatchError } from './json-patch.ts'
import { applyMergePatch } from './merge-patch.ts'
import { applyStrategicMerge } from './strategic-merge.ts'
import { messageNamed } from '../schema/schema.ts'
import type { JsonObject } from '../json.ts'

describe('applyJsonPatch()', () => {
  it.each([
    [{ a: 1 }, [{ op: 'add', path: '/b', value: 2 }], { a: 1, b: 2 }],
    [{ a: [1, 3] }, [{ op: 'add', path: '/a/1', value: 2 }], { a: [1, 2, 3] }],
    [{ a: [1] }, [{ op: 'add', path: '/a/-', value: 2 }], { a: [1, 2] }],
    [{ a: { 'b/c': 1 } }, [{ op: 'replace', path: '/a/b~1c', value: 2 }], { a: { 'b/c': 2 } }],
    [{ a: 1, b: 2 }, [{ op: 'remove', path: '/a' }], { b: 2 }],
    [{ a: 1 }, [{ op: 'move', from: '/a', path: '/b' }], { b: 1 }],
    [{ a: [1] }, [{ op: 'copy', from: '/a', path: '/b' }], { a: [1], b: [1] }],
    [{ a: 1 }, [{ op: 'test', path: '/a', value: 1 }], { a: 1 }],
    [{ a: 1 }, [{ op: 'replace', path: '', value: { b: 1 } }], { b: 1 }],
  ])('of %j with %j', (document, patch, result) => expect(applyJsonPatch(document, patch)).toEqual(result))

  it.each([
    [[{ op: 'test', path: '/a', value: 2 }]],
    [[{ op: 'remove', path: '/b' }]],
    [[{ op: 'replace', path: '/b', value: 1 }]],
    [[{ op: 'add', path: '/b/c', value: 1 }]],
  ])('fails with %j', (patch) => expect(() => applyJsonPatch({ a: 1 }, patch)).toThrow(JsonPatchError))

  it('leaves the document alone', () => {
    const document = { a: { b: 1 } }
    applyJsonPatch(document, [{ op: 'remove', path: '/a/b' }])
    expect(document).toEqual({ a: { b: 1 } })
  })
})

describe('applyMergePatch()', () => {
  it('merges objects, removes with null, replaces the rest', () => {
    const document = { a: { b: 1, c: 2 }, d: [1, 2], e: 1 }
    expect(applyMergePatch(document, { a: { b: null, x: 1 }, d: [3], e: { f: 1 } })).toEqual({
      a: { c: 2, x: 1 },
      d: [3],
      e: { f: 1 },
    })
  })
})

describe('applyStrategicMerge()', () => {
  const deployment = (containers: JsonObject[]): JsonObject => ({ spec: { template: { spec: { containers } } } })
  const message = messageNamed('apps.Deployment')

  it('merges a list by its key, and adds what is new', () => {
    const before = deployment([
      { name: 'a', image: 'a:1', tty: true },
      { name: 'b', image: 'b:1' },
    ])
    const patch = deployment([
      { name: 'a', image: 'a:2' },
      { name: 'c', image: 'c:1' },
    ])
    expect(applyStrategicMerge(before, patch, message)).toEqual(
      deployment([
        { name: 'a', image: 'a:2', tty: true },
        { name: 'b', image: 'b:1' },
        { name: 'c', image: 'c:1' },
      ]),
    )
  })

  it('deletes an element by $patch, and replaces the list by it', () => {
    const before = deployment([{ name: 'a' }, { name: 'b' }])
    expect(applyStrategicMerge(before, deployment([{ name: 'a', $patch: 'delete' }]), message)).toEqual(
      deployment([{ name: 'b' }]),
    )
    expect(applyStrategicMerge(before, deployment([{ $patch: 'replace' }, { name: 'c' }]), message)).toEqual(
      deployment([{ name: 'c' }]),
    )
  })

  it('orders a list by $setElementOrder', () => {
    const before = deployment([{ name: 'a' }, { name: 'b' }])
    const patch = {
      spec: {
        template: { spec: { $setElementOrder_: 0, '$setElementOrder/containers': [{ name: 'b' }, { name: 'a' }] } },
      },
    }
    expect(applyStrategicMerge(before, patch, message)).toEqual(deployment([{ name: 'b' }, { name: 'a' }]))
  })

  it('replaces a list that has no key', () => {
    const before = { spec: { externalIPs: ['1.1.1.1'], ports: [{ port: 80, name: 'a' }] } }
    const patch = { spec: { externalIPs: ['2.2.2.2'], ports: [{ port: 80, targetPort: 1 }, { port: 81 }] } }
    expect(applyStrategicMerge(before, patch, messageNamed('core.Service'))).toEqual({
      spec: { externalIPs: ['2.2.2.2'], ports: [{ port: 80, name: 'a', targetPort: 1 }, { port: 81 }] },
    })
  })

  it('adds to and deletes from a list of words', () => {
    const before = { metadata: { finalizers: ['a', 'b'] } }
    const patch = { metadata: { finalizers: ['c'], '$deleteFromPrimitiveList/finalizers': ['a'] } }
    expect(applyStrategicMerge(before, patch, message)).toEqual({ metadata: { finalizers: ['b', 'c'] } })
  })

  it('keeps only what $retainKeys names', () => {
    const before = { spec: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } } } }
    const patch = { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } }
    expect(applyStrategicMerge(before, patch, message)).toEqual({ spec: { strategy: { type: 'Recreate' } } })
  })

  it('refuses an element without the key', () => {
    const patch = deployment([{ image: 'x' }])
    expect(() => applyStrategicMerge(deployment([]), patch, message)).toThrow(
      'does not contain declared merge key: name',
    )
  })
})
