// The kernel setting route_localnet, for node ports on 127.0.0.1: their packets leave for an endpoint elsewhere, which the kernel
// forbids by default.
//
// It also lets any neighbour in the network reach what listens on 127.0.0.1 only, unless a rule drops such packets
// (CVE-2020-8558). So it is set when that rule is in the kernel and not before, and taken back when we leave. Whether it is ours
// to take back is noted where it outlives this process: an empty chain beside our rules says that it was off before us.

import type { Logger } from '../../lib/log.ts'
import { CHAINS } from './plan/names.ts'
import type { Iptables } from '../../iptables/driver.ts'
import { KeptText } from '../../iptables/kept-text.ts'
import type { Op } from '../../iptables/ops.ts'
import { Script } from '../../iptables/script.ts'
import { applyHostSetup, type HostSetting } from '../../system/host-setup.ts'
import { readNumber, type SettingFiles } from '../../system/setting-files.ts'

export const ROUTE_LOCALNET: HostSetting = {
  path: '/proc/sys/net/ipv4/conf/all/route_localnet',
  wanted: 1,
  rule: 'exactly',
}

/** The filter table, for the note. */
type NoteKeeper = Pick<Iptables, 'backend' | 'hasChain' | 'restore'>

const { localnetNote: chain } = CHAINS
const WRITE_NOTE: Op = { op: 'writeChain', table: 'filter', chain, stage: 'helper', rules: [], owner: undefined }
const DELETE_NOTE: Op = { op: 'deleteChain', table: 'filter', chain }

export class RouteLocalnet {
  readonly #driver: NoteKeeper
  readonly #files: SettingFiles
  readonly #log: Logger
  /** Whether we turned it on; undefined until the table has been asked, and as long as it does not tell. */
  #isOurs: boolean | undefined

  constructor(driver: NoteKeeper, files: SettingFiles, log: Logger) {
    this.#driver = driver
    this.#files = files
    this.#log = log
  }

  /**
   * After the rules have been compared and written: `wanted` when the rule that makes it safe is among them, `written` when any
   * had to be written. Then another program may have flushed the note with them.
   */
  async follow(wanted: boolean, written = false): Promise<void> {
    const wasKnown = this.#isOurs !== undefined
    this.#isOurs ??= await this.#driver.hasChain('filter', chain)
    if (wanted && readNumber(this.#files, ROUTE_LOCALNET.path) !== 1) await this.#turnOn()
    else if (!wanted && this.#isOurs) await this.#turnOff()
    else if (wanted && this.#isOurs && wasKnown && written) await this.#write(WRITE_NOTE)
  }

  /** The note comes first: without it, a process that is killed in between would leave the setting behind for ever. */
  async #turnOn(): Promise<void> {
    await this.#write(WRITE_NOTE)
    this.#isOurs = true
    applyHostSetup([ROUTE_LOCALNET], this.#files, this.#log)
  }

  async #turnOff(): Promise<void> {
    if (!takeBackLocalnet(this.#files, this.#log)) return
    await this.#write(DELETE_NOTE)
    this.#isOurs = false
  }

  #write(op: Op): Promise<void> {
    return this.#driver.restore(new KeptText(new Script([op], this.#driver.backend).text()))
  }
}

/** False when it could not be. */
export function takeBackLocalnet(files: SettingFiles, log: Logger): boolean {
  const [applied] = applyHostSetup([{ ...ROUTE_LOCALNET, wanted: 0 }], files, log)
  return applied?.outcome !== 'failed'
}
