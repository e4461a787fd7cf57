import { describe, expect, it } from 'vitest'
import { silentLogger } from '../../lib/log.ts'
import { applyScript } from '../../../test/support/apply-script.ts'
import type { KeptText } from '../../iptables/kept-text.ts'
import type { Tables } from '../../iptables/types.ts'
import { ROUTE_LOCALNET, RouteLocalnet, takeBackLocalnet } from './route-localnet.ts'

/** A machine: its filter table, the setting, and in which order they were changed. */
class Machine {
  value: string
  tables: Tables
  readonly steps: string[] = []
  readonly backend = 'nft' as const
  isSilent = false

  constructor(value: string, filter = '*filter\nCOMMIT\n') {
    this.value = value
    this.tables = applyScript(new Map(), filter)
  }

  readonly files = {
    read: () => `${this.value}\n`,
    write: (path: string, value: string) => {
      expect(path).toBe(ROUTE_LOCALNET.path)
      this.value = value
      this.steps.push(`route_localnet=${value}`)
    },
  }

  /** Undefined: the table does not tell. */
  async hasChain(table: 'filter', chain: string): Promise<boolean | undefined> {
    return this.isSilent ? undefined : this.tables.get(table)!.has(chain)
  }

  async restore(text: KeptText): Promise<void> {
    this.tables = applyScript(this.tables, [...text].join(''))
    this.steps.push(this.hasNote ? 'note' : 'no note')
  }

  get hasNote(): boolean {
    return this.tables.get('filter')!.has('KUBE-PROXY-LOCALNET')
  }

  open(): RouteLocalnet {
    return new RouteLocalnet(this, this.files, silentLogger)
  }
}

describe('RouteLocalnet', () => {
  it('turns the setting on with a note that it was off, and both off again', async () => {
    const machine = new Machine('0')
    const localnet = machine.open()
    await localnet.follow(true)
    await localnet.follow(true)
    expect(machine.steps).toEqual(['note', 'route_localnet=1'])
    await localnet.follow(false)
    expect(machine.steps.slice(2)).toEqual(['route_localnet=0', 'no note'])
  })

  it('knows after a restart that it is ours', async () => {
    const machine = new Machine('0')
    await machine.open().follow(true)
    await machine.open().follow(false)
    expect(machine.value).toBe('0')
  })

  it('is not taken back by a process that cannot find out whose it is, until it can', async () => {
    const machine = new Machine('0')
    await machine.open().follow(true)
    const localnet = machine.open()
    machine.isSilent = true
    await localnet.follow(false)
    expect(machine.value).toBe('1')
    machine.isSilent = false
    await localnet.follow(false)
    expect(machine.value).toBe('0')
  })

  it('leaves it on where the operator had it on before', async () => {
    const machine = new Machine('1')
    await machine.open().follow(true)
    await machine.open().follow(false)
    expect(machine.steps).toEqual([])
  })

  it('writes the note again when it was flushed with the rules', async () => {
    const machine = new Machine('0')
    const localnet = machine.open()
    await localnet.follow(true)
    machine.tables = applyScript(new Map(), '*filter\nCOMMIT\n')
    await localnet.follow(true, true)
    expect(machine.hasNote).toBe(true)
  })
})

it('takeBackLocalnet() says when it cannot', () => {
  const write = () => {
    throw new Error('read-only file system')
  }
  expect(takeBackLocalnet({ read: () => '1', write }, silentLogger)).toBe(false)
  expect(takeBackLocalnet({ read: () => '0', write }, silentLogger)).toBe(true)
})
