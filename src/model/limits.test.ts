import { expect, test } from 'vitest'
import { nodeView, service, slice } from '../../test/support/kube-objects.ts'
import { describeLimits, type Limits, LIMITS_ANNOTATION, parseLimits, sameLimits } from './limits.ts'
import { ProblemLog } from './problems.ts'
import { ServiceModel } from './service-model.ts'

function parse(text: string): readonly [Limits | undefined, ...(readonly string[])] {
  const refused: string[] = []
  const limits = parseLimits(text, (part) => refused.push(part))
  return [limits, ...refused]
}

test('parseLimits() reads parts in any order, and leaves out what is not allowed, or is there twice', () => {
  const all = { open: 2000, openPerClient: 100, perSecond: 50, perSecondPerClient: 10 }
  expect(parse('2000, 100 per client, 50/s, 10/s per client')).toEqual([{ ...all, over: 'refuse' }])
  expect(parse('drop,10/s per client,50/s,100 per client,2000')).toEqual([{ ...all, over: 'drop' }])
  expect(parse('5, refuse')).toEqual([{ open: 5, over: 'refuse' }])
  expect(parse('5, 6')).toEqual([{ open: 5, over: 'refuse' }, '6'])
  expect(parse('5, drop, refuse')).toEqual([{ open: 5, over: 'drop' }, 'refuse'])
  for (const bad of ['', '0', '-1', '1000001', '100001/s', '5/m', '5 per pod', '5  per client', '1e3', '05x'])
    expect(parse(bad)).toEqual([undefined, bad])
  expect(parse('drop')).toEqual([undefined, 'drop'])
})

test('sameLimits() and describeLimits() look at all of them', () => {
  const [limits] = parse('7, 6 per client, 5/s, 4/s per client')
  expect(sameLimits(limits, { ...limits! })).toBe(true)
  for (const other of [undefined, { ...limits!, open: 8 }, { ...limits!, over: 'drop' } as const])
    expect(sameLimits(limits, other)).toBe(false)
  expect(describeLimits(limits!)).toBe(
    'at most 7 open connections, 6 open connections per client, 5 new ones per second, 4 new ones per second and client; what is over is refused',
  )
})

test('a mode that cannot limit says so to the owner, and is asked for no other Service', () => {
  const said: string[] = []
  let asked = 0
  const model = new ServiceModel({
    node: nodeView(),
    problems: new ProblemLog(({ message }) => void said.push(message)),
    allowExternalIPs: true,
    canLimit: () => asked++ < 0,
    startedMs: 0,
  })
  const put = (name: string, ip: string, annotations: Record<string, string>) => {
    model.setService(service({ name, clusterIPs: [ip], annotations }))
    model.setSlice(slice([{ address: '10.1.0.1' }], { name: `${name}-1`, serviceName: name }))
    model.takeChanges()
  }
  put('plain', '10.0.0.1', {})
  expect(asked).toBe(0)
  put('limited', '10.0.0.2', { [LIMITS_ANNOTATION]: '5' })
  expect(said.join()).toContain(LIMITS_ANNOTATION)
  const limits = [...model.views()].flatMap(({ frontends }) => frontends.map((frontend) => frontend.limits))
  expect(limits).toEqual([undefined, undefined])
})
