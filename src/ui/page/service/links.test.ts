import { expect, it } from 'vitest'
import type { ServiceDetail } from '../../protocol.ts'
import { isOwn, linkedTo } from './links.ts'

const object = {
  family: 4,
  hook: 'output',
  place: 'p',
  rule: 'r',
  comment: null,
  found: [],
  packets: null,
  bytes: null,
} as const
const detail: ServiceDetail = {
  namespace: 'default',
  name: 'whoami',
  node: 'node-1',
  mode: 'nftables',
  problems: [],
  kernel: [],
  frontends: ['f1', 'f2'].map((id) => ({
    id,
    port: 'default/whoami',
    family: 4,
    kind: 'clusterIP',
    affinitySeconds: null,
    allowedSources: null,
    routes: [
      {
        from: 'others',
        outcome: 'to',
        because: '',
        masquerade: false,
        masqueradeWhy: null,
        backends: id === 'f1' ? ['b1', 'b2'] : ['b2'],
      },
    ],
    objects: id === 'f1' ? ['o1', 'o2'] : ['o2'],
  })),
  backends: ['b1', 'b2'].map((id) => ({
    id,
    address: id,
    port: 'default/whoami',
    pod: null,
    node: '',
    eligible: true,
    why: '',
    external: null,
    ejected: false,
    objects: [id === 'b1' ? 'o1' : 'o2'],
  })),
  objects: [
    { ...object, id: 'o1', frontends: ['f1'], backends: ['b1'] },
    { ...object, id: 'o2', frontends: ['f1', 'f2'], backends: ['b2'] },
  ],
}

it('pointing at one side shows the other', () => {
  const shown = (kind: 'frontend' | 'backend' | 'object', id: string) => {
    const { frontends, backends, objects } = linkedTo({ kind, id }, detail)!
    return [[...frontends], [...backends], [...objects]]
  }
  expect(shown('frontend', 'f2')).toEqual([['f2'], ['b2'], ['o2']])
  expect(shown('backend', 'b1')).toEqual([['f1'], ['b1'], ['o1']])
  expect(shown('object', 'o2')).toEqual([['f1', 'f2'], ['b2'], ['o2']])
  expect(linkedTo(null, detail)).toBeNull()
})

it('what is there for one alone is told from what others meet, too', () => {
  const [first, second] = detail.objects
  expect(isOwn({ kind: 'frontend', id: 'f1' }, first!)).toBe(true)
  expect(isOwn({ kind: 'frontend', id: 'f1' }, second!)).toBe(false)
  expect(isOwn({ kind: 'backend', id: 'b2' }, second!)).toBe(true)
  expect(isOwn(null, first!)).toBe(false)
})
