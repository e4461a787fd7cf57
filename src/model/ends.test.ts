import { expect, test } from 'vitest'
import { ipBytes } from '../lib/ip.ts'
import type { Endpoint } from './endpoints.ts'
import { type Ends, parseEnds, planEnds } from './ends.ts'

function parse(text: string): Ends | string | undefined {
  let refused: string | undefined
  const ends = parseEnds(text, (part, allowed) => (refused = `${part}: ${allowed}`))
  return refused ?? ends
}

test('parseEnds() reads what is allowed, and says what is', () => {
  expect(parse('keep')).toBeUndefined()
  expect(parse('reset')).toEqual({ afterSeconds: undefined })
  expect(parse('reset after 30s')).toEqual({ afterSeconds: 30 })
  for (const bad of ['', 'Reset', 'reset after 0s', 'reset after 86401s', 'reset after 5m', 'reset after 30s '])
    expect(parse(bad)).toBe(`${bad}: must be "keep", "reset" or "reset after Ns", with 1 to 86400 seconds`)
})

const serving: Endpoint = {
  ip: '10.1.0.1',
  address: ipBytes('10.1.0.1'),
  port: 80,
  isLocal: true,
  nodeName: 'a',
  ready: true,
  serving: true,
  terminating: false,
  weight: 1,
  zoneHints: undefined,
  nodeHints: undefined,
}
const at = (ip: string, wish: Partial<Endpoint>): Endpoint => ({ ...serving, ip, address: ipBytes(ip), ...wish })

test('planEnds(): only those that terminate and do not serve are ending, and only where there is a time for that', () => {
  const endpoints = [
    serving,
    at('10.1.0.2', { ready: false, serving: false }),
    at('10.1.0.3', { ready: false, terminating: true }),
    at('10.1.0.4', { ready: false, serving: false, terminating: true }),
  ]
  const names = ['10.1.0.1:80', '10.1.0.2:80', '10.1.0.3:80', '10.1.0.4:80']
  expect(planEnds(endpoints, { afterSeconds: undefined }, undefined)).toMatchObject({ present: names, ending: [] })
  const timed = planEnds(endpoints, { afterSeconds: 5 }, undefined)
  expect(timed).toMatchObject({ present: names.slice(0, 3), ending: names.slice(3) })
  expect(planEnds([...endpoints], { afterSeconds: 5 }, timed)).toBe(timed)
  expect(planEnds(endpoints, { afterSeconds: 6 }, timed)).not.toBe(timed)
})
