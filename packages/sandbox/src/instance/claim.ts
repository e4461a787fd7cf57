// Finding a name, a number and address ranges that are free on this machine.

import { MAX_SANDBOXES, fitOf, planAddresses, type AddressPlan } from '../address-plan.ts'
import { Rtnetlink } from '../../../../src/links/rtnetlink.ts'
import { processStart } from '../../../../src/system/process.ts'
import type { Cidr, Family } from '../../../../src/lib/ip.ts'
import { InstanceFolder, listInstances, withInstancesLock, type InstanceRecord } from './instance-folder.ts'

export interface ClaimOptions {
  readonly root: string
  /** The name asked for; undefined: any that is free. */
  readonly name: string | undefined
  readonly families: readonly Family[]
  readonly privilege: InstanceRecord['privilege']
}

export interface Claim {
  readonly folder: InstanceFolder
  readonly plan: AddressPlan
}

/** Names are part of file names, of namespaces' names and of the kubeconfig. */
const NAME = /^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$/

/** Makes a folder for this process's sandbox. What dead ones left is cleared away first. */
export function claimInstance(options: ClaimOptions): Claim {
  const { root, families, privilege } = options
  if (options.name !== undefined && !NAME.test(options.name)) {
    throw new Error(
      `Cannot name a sandbox ${JSON.stringify(options.name)}: must be made of lower case letters, digits and '-'`,
    )
  }
  return withInstancesLock(root, () => {
    clearDead(root)
    const alive = listInstances(root)
    const name = options.name ?? freeName(alive.map(({ name }) => name))
    const same = alive.find((folder) => folder.name === name)
    if (same !== undefined) {
      const { pid } = same.read() as InstanceRecord
      throw new Error(`Cannot start sandbox ${name}: it is running already, as process ${pid}`)
    }
    const taken = new Set(alive.map((folder) => folder.read()?.index ?? -1))
    const plan = freePlan(families, taken)
    const folder = new InstanceFolder(root, name)
    const start = processStart(process.pid) ?? 0
    folder.create({ name, pid: process.pid, processStart: start, index: plan.index, privilege })
    return { folder, plan }
  })
}

/** Removes what sandboxes left whose process is gone. Returns their names. */
export function clearDead(root: string): string[] {
  const dead = listInstances(root).filter((folder) => !folder.isAlive())
  for (const folder of dead) folder.remove()
  return dead.map(({ name }) => name)
}

function freeName(taken: readonly string[]): string {
  for (let n = 1; ; n++) {
    const name = n === 1 ? 'sandbox' : `sandbox-${n}`
    if (!taken.includes(name)) return name
  }
}

/** The first number whose ranges meet no route of this machine; at worst, one whose ranges are part of larger ones. */
function freePlan(families: readonly Family[], taken: ReadonlySet<number>): AddressPlan {
  const used = usedRanges(families)
  let second: AddressPlan | undefined
  for (let index = 0; index < MAX_SANDBOXES; index++) {
    if (taken.has(index)) continue
    const plan = planAddresses(index, families)
    const fit = fitOf(plan, used)
    if (fit === 'free') return plan
    if (fit === 'within') second ??= plan
  }
  if (second !== undefined) return second
  throw new Error('Cannot find free addresses: this machine has routes into 10.0.0.0/8 or 172.30.0.0/16 everywhere')
}

function usedRanges(families: readonly Family[]): Cidr[] {
  using links = new Rtnetlink()
  return families.flatMap((family) => links.routeDestinations(family))
}
