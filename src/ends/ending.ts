// Ends connections: the table and the socket that this takes, both of which are gone when it is closed, or the process ends.

import { randomBytes } from 'node:crypto'
import type { Flow } from '../conntrack/driver.ts'
import type { Family } from '../lib/ip.ts'
import { NftablesDriver } from '../nftables/driver.ts'
import { nftFamily } from '../nftables/language.ts'
import { makeTable } from '../nftables/transaction.ts'
import { ENDS_TABLE } from './names.ts'
import { endedKeys, endedSet, planEndsTable } from './plan-table.ts'
import { encodeWakePacket } from './wake-packet.ts'
import { WakeSocket } from './wake-socket.ts'

export class Ending {
  readonly #family: Family
  readonly #driver: NftablesDriver
  readonly #socket: WakeSocket

  constructor(family: Family) {
    this.#family = family
    const table = `${ENDS_TABLE}-${randomBytes(4).toString('hex')}`
    this.#driver = new NftablesDriver({ family: nftFamily(family), table })
    try {
      this.#driver.apply(makeTable(planEndsTable(family)))
      this.#socket = new WakeSocket(family)
    } catch (error) {
      this.#driver.close()
      throw error
    }
  }

  /** From now on, packets of these connections are answered with resets. */
  refuse(flows: readonly Flow[]): void {
    const elements = flows.flatMap((flow) => endedKeys(flow)).map((key) => ({ key }))
    this.#driver.apply([{ op: 'addElements', set: endedSet(this.#family), elements }])
  }

  /** Makes both sides send something. */
  wake(flows: readonly Flow[]): void {
    const family = this.#family
    for (const { original, reply } of flows) {
      this.#socket.send(encodeWakePacket(family, reply, 'answer'), original.src)
      this.#socket.send(encodeWakePacket(family, original, 'request'), reply.src)
    }
  }

  close(): void {
    this.#socket.close()
    this.#driver.close()
  }
}
