// The driver against a real kernel: transactions, their errors, and reading back.

import { asBytes } from '../../src/lib/ip.ts'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { unshareNetwork } from '../../src/system/netns.ts'
import { NftablesDriver } from '../../src/nftables/driver.ts'
import type { Chain, Element, NftSet, Op, Rule } from '../../src/nftables/types.ts'
import { errorOf } from '../support/kernel-error.ts'
import { isRoot, listWithNft, loadWithNft, nft } from '../support/nft.ts'
import { makeSet } from '../../src/nftables/make-set.ts'

const services = makeSet('service-ips', ['ipv4_addr', 'inet_proto', 'inet_service'])
const endpoints: NftSet = { ...services, name: 'endpoints', data: ['ipv4_addr', 'inet_service'] }
const service = (n: number): Element => ({
  key: asBytes(`\n${String.fromCharCode(n >> 16, (n >> 8) & 255, n & 255)}\x06\0\0\0\0P\0\0`),
})
const chain = (name: string): Chain => ({ name, comment: undefined, hook: undefined, rules: [] })
const rule = (text: string, target: string): Rule => ({
  text,
  comment: undefined,
  expressions: [{ kind: 'verdict', code: 'goto', chain: target }],
})
const create: Op[] = [
  { op: 'addTable', comment: undefined },
  { op: 'addSet', set: services },
  { op: 'addSet', set: endpoints },
]

describe.skipIf(!isRoot)('NftablesDriver (needs root)', () => {
  let driver: NftablesDriver

  beforeAll(() => {
    unshareNetwork()
    driver = new NftablesDriver({ family: 'ip', table: 't' })
    return () => driver.close()
  })

  afterEach(() => {
    nft('flush', 'ruleset')
  })

  it('read() gives undefined when there is no table', () => {
    expect(driver.read()).toBeUndefined()
  })

  it('read() is not confused by other tables', () => {
    loadWithNft(
      'add table ip other\nadd set ip other s { type ipv4_addr; }\nadd chain ip other c\nadd table ip6 t\nadd chain ip6 t d',
    )
    driver.apply(create)
    const table = driver.read()!
    expect([...table.sets.keys()]).toEqual(['service-ips', 'endpoints'])
    expect([...table.chains.keys()]).toEqual([])
  })

  it('readOutline() is the same without elements, and asks for none', () => {
    expect(driver.readOutline()).toBeUndefined()
    driver.apply([...create, { op: 'addChain', chain: chain('c') }])
    driver.apply([{ op: 'addElements', set: services, elements: [service(1), service(2)] }])
    const { elements, ...rest } = driver.read()!
    expect(elements.size).toBe(1)
    expect(driver.readOutline()).toEqual(rest)
  })

  it('apply() creates what exists already without complaint', () => {
    driver.apply(create)
    driver.apply([...create, { op: 'addChain', chain: chain('c') }, { op: 'addChain', chain: chain('c') }])
    driver.apply([{ op: 'addElements', set: services, elements: [service(1)] }])
    driver.apply([{ op: 'addElements', set: services, elements: [service(1), service(2)] }])
    expect(driver.readElements(services)).toHaveLength(2)
  })

  it('apply() deletes the table whether it exists or not, and can make it again at once', () => {
    driver.apply([{ op: 'deleteTable' }])
    driver.apply([...create, { op: 'addElements', set: services, elements: [service(1)] }])
    driver.apply([{ op: 'deleteTable' }, ...create])
    expect(driver.read()!.elements.size).toBe(0)
    driver.apply([{ op: 'deleteTable' }])
    expect(nft('list', 'ruleset')).toBe('')
  })

  it('apply() replaces the rules of a chain', () => {
    driver.apply([...create, ...['a', 'b', 'c'].map((name): Op => ({ op: 'addChain', chain: chain(name) }))])
    driver.apply([{ op: 'addRule', chain: 'a', rule: rule('goto b', 'b') }])
    driver.apply([
      { op: 'flushChain', name: 'a' },
      { op: 'addRule', chain: 'a', rule: rule('goto c', 'c') },
      { op: 'deleteChain', name: 'b' },
    ])
    const chains = driver.read()!.chains
    expect([...chains.keys()]).toEqual(['a', 'c'])
    expect(chains.get('a')!.rules.map(({ expressions }) => expressions)).toEqual([rule('', 'c').expressions])
    expect(chains.get('a')!.rules[0]!.handle).toBeGreaterThan(0n)
  })

  it('apply() sends nothing when there is nothing to do', () => {
    const before = driver.generation()
    expect(driver.apply([])).toEqual({ bytes: 0 })
    expect(driver.generation()).toBe(before)
  })

  it('apply() does all or nothing, and says which operation failed', () => {
    driver.apply(create)
    const error = errorOf(() =>
      driver.apply([
        { op: 'addElements', set: services, elements: [service(1)] },
        { op: 'addRule', chain: 'nowhere', rule: rule('goto b', 'b') },
        { op: 'addElements', set: services, elements: [service(2)] },
      ]),
    )
    expect(error.errno).toBe('ENOENT')
    expect(error.message).toBe('Cannot add rule "goto b" to chain nowhere (table ip t): ENOENT')
    expect(driver.readElements(services)).toEqual([])
  })

  it('apply() names the one element of many that failed', () => {
    driver.apply([...create, { op: 'addElements', set: services, elements: [service(1), service(2), service(3)] }])
    const error = errorOf(() =>
      driver.apply([{ op: 'deleteElements', set: services, elements: [service(1), service(300), service(3)] }]),
    )
    expect(error.message).toBe('Cannot delete element 10.0.1.44 . tcp . 80 from set service-ips (table ip t): ENOENT')
    expect(driver.readElements(services)).toHaveLength(3)
  })

  it('apply() fails when an element exists with another value', () => {
    const element = (port: number) => ({
      ...service(1),
      data: asBytes(`\n\x01\0\x01\0${String.fromCharCode(port)}\0\0`),
    })
    driver.apply([...create, { op: 'addElements', set: endpoints, elements: [element(80)] }])
    const error = errorOf(() => driver.apply([{ op: 'addElements', set: endpoints, elements: [element(81)] }]))
    expect(error.message).toBe('Cannot add element 10.0.0.1 . tcp . 80 to map endpoints (table ip t): EEXIST')
    driver.apply([
      { op: 'deleteElements', set: endpoints, elements: [element(80)] },
      { op: 'addElements', set: endpoints, elements: [element(81)] },
    ])
    expect(driver.readElements(endpoints)).toEqual([element(81)])
  })

  it('apply() fails when a chain is still in use, and the driver goes on working', () => {
    driver.apply([...create, { op: 'addChain', chain: chain('a') }, { op: 'addChain', chain: chain('b') }])
    driver.apply([{ op: 'addRule', chain: 'a', rule: rule('goto b', 'b') }])
    expect(errorOf(() => driver.apply([{ op: 'deleteChain', name: 'b' }])).errno).toBe('EBUSY')
    driver.apply([
      { op: 'deleteChain', name: 'a' },
      { op: 'deleteChain', name: 'b' },
    ])
    expect(driver.read()!.chains.size).toBe(0)
  })

  it('apply() takes 100,000 elements in one transaction, and read() gives them back', () => {
    const elements = Array.from({ length: 100_000 }, (_, i) => service(i))
    driver.apply(create)
    const before = driver.generation()
    const { bytes } = driver.apply([{ op: 'addElements', set: services, elements }])
    expect(bytes).toBeGreaterThan(2_000_000)
    expect(driver.generation()).toBe(before + 1)
    const read = driver.read()!.elements.get('service-ips')!
    expect(read.size).toBe(100_000)
    expect(elements.every(({ key }) => read.has(key))).toBe(true)
    driver.apply([{ op: 'deleteElements', set: services, elements }])
    expect(driver.readElements(services)).toEqual([])
  })

  it('read() misses no element, even while the kernel still rearranges what was just added', () => {
    const elements = Array.from({ length: 30_000 }, (_, i) => service(i))
    for (let round = 0; round < 10; round++) {
      driver.apply([{ op: 'deleteTable' }, ...create])
      driver.apply([{ op: 'addElements', set: services, elements }])
      expect(driver.read()!.elements.get('service-ips')!.size).toBe(30_000)
    }
  })

  it('apply() that fails among 100,000 elements names the one and changes nothing', () => {
    const elements = Array.from({ length: 100_000 }, (_, i) => service(i))
    driver.apply([...create, { op: 'addElements', set: services, elements: elements.slice(1) }])
    const error = errorOf(() =>
      driver.apply([{ op: 'deleteElements', set: services, elements: elements.toReversed() }]),
    )
    expect(error.message).toBe('Cannot delete element 10.0.0.0 . tcp . 80 from set service-ips (table ip t): ENOENT')
    expect(driver.readElements(services)).toHaveLength(99_999)
  })

  it('keeps comments, hooks and priorities', () => {
    const base: Chain = {
      name: 'nat-prerouting',
      comment: 'where packets come in',
      hook: { type: 'nat', hook: 'prerouting', priority: -100 },
      rules: [],
    }
    const filter: Chain = { ...base, name: 'filter-input', hook: { type: 'filter', hook: 'input', priority: 0 } }
    driver.apply([
      { op: 'addTable', comment: 'rules for kube-proxy' },
      { op: 'addChain', chain: base },
      { op: 'addChain', chain: filter },
      { op: 'addRule', chain: 'filter-input', rule: { ...rule('', ''), comment: 'nothing else', expressions: [] } },
    ])
    const table = driver.read()!
    expect(table.comment).toBe('rules for kube-proxy')
    expect(table.chains.get('nat-prerouting')).toEqual(base)
    expect(table.chains.get('filter-input')).toMatchObject({ hook: filter.hook, rules: [{ comment: 'nothing else' }] })
    expect(listWithNft()).toContain('type nat hook prerouting priority dstnat; policy accept;')
  })

  it('reads a policy that another program has set', () => {
    loadWithNft('add table ip t\nadd chain ip t c { type filter hook input priority 0; policy drop; }')
    expect(driver.read()!.chains.get('c')!.hook).toEqual({ type: 'filter', hook: 'input', priority: 0, policy: 'drop' })
  })
})
