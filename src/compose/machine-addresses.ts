// Watches the addresses of this machine.

import { listAddresses, watchAddresses } from '../links/addresses.ts'
import { KernelError } from '../lib/errors.ts'
import type { Clock, Timer } from '../lib/clock.ts'
import type { Logger } from '../lib/log.ts'
import { modes } from '../modes/all.ts'

export interface FollowAddressesOptions {
  readonly onAddresses: (addresses: readonly string[]) => void
  readonly clock: Clock
  readonly log: Logger
  /** For tests. */
  readonly read?: () => readonly string[]
  readonly watch?: (onChange: () => void) => { close(): void }
}

/** The kernel may have no memory, or we no file descriptor, for the moment in which something changes. */
const RETRY_MS = 1000

/** The links to which modes add the addresses of services. */
function serviceLinks(): ReadonlySet<string> {
  return new Set(modes.flatMap((mode) => mode.serviceLinks))
}

/** The addresses of this machine, without those of services that a mode added. */
export function readMachineAddresses(): string[] {
  const links = serviceLinks()
  return listAddresses().flatMap(({ address, interfaceName }) => (links.has(interfaceName) ? [] : [address]))
}

/** Reports the addresses whenever they may have changed. If reading them fails, tries again a little later. */
export function followMachineAddresses(options: FollowAddressesOptions): { close(): void } {
  const { onAddresses, clock, log, read = readMachineAddresses, watch = watchOwnAddresses } = options
  let timer: Timer | undefined
  const look = () => {
    timer?.cancel()
    timer = undefined
    let addresses: readonly string[]
    try {
      addresses = read()
    } catch (error) {
      if (!(error instanceof KernelError)) throw error
      log.error(error, 'Cannot read the addresses of this machine; those known before stay', { retryInMs: RETRY_MS })
      timer = clock.setTimeout(look, RETRY_MS)
      return
    }
    onAddresses(addresses)
  }
  const watching = watch(look)
  return {
    close() {
      timer?.cancel()
      watching.close()
    },
  }
}

function watchOwnAddresses(onChange: () => void): { close(): void } {
  return watchAddresses(onChange, { except: serviceLinks() })
}
