import { expect, test } from 'vitest'
import { ServerOwners, type WantedServer } from './owners.ts'

const server = (by: WantedServer['by'], host: number, address = '10.0.0.1'): WantedServer => ({
  by,
  server: {
    family: 4,
    protocol: 'TCP',
    address,
    port: 30080,
    scheduler: 'rr',
    schedulerFlags: 0,
    persistenceSeconds: undefined,
  },
  destinations: [{ address: `10.1.0.${host}`, port: 8080, weight: 1 }],
})

test('an address goes before a node port, whichever comes first', () => {
  const [byAddress, byNodePort] = [server('address', 1), server('nodePort', 2)]
  const owners = new ServerOwners(['10.0.0.1'])
  expect(owners.change([], [byNodePort])).toEqual({ before: [], after: [byNodePort] })
  expect(owners.change([], [byAddress])).toEqual({ before: [byNodePort], after: [byAddress] })
  expect(owners.change([byNodePort], [])).toEqual({ before: [byAddress], after: [byAddress] })
  expect(owners.change([], [byNodePort])).toEqual({ before: [byAddress], after: [byAddress] })
  expect(owners.change([byAddress], [])).toEqual({ before: [byAddress], after: [byNodePort] })
  expect(owners.change([byNodePort], [])).toEqual({ before: [byNodePort], after: [] })
})

test('both may come at once, and a server may change hands', () => {
  const owners = new ServerOwners(['10.0.0.1'])
  const [byAddress, other] = [server('address', 1), server('address', 3)]
  expect(owners.change([], [byAddress, server('nodePort', 2)])).toEqual({ before: [], after: [byAddress] })
  expect(owners.change([byAddress], [other])).toEqual({ before: [byAddress], after: [other] })
})

test('servers on addresses without node ports are passed through', () => {
  const owners = new ServerOwners(['10.0.0.1'])
  const elsewhere = server('address', 1, '10.2.0.1')
  expect(owners.change([], [elsewhere])).toEqual({ before: [], after: [elsewhere] })
  expect(owners.change([elsewhere], [])).toEqual({ before: [elsewhere], after: [] })
})
