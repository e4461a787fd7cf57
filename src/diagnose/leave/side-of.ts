// A node and its cluster, decided for one mode.

import type { Family } from '../../lib/ip.ts'
import { modeNamed } from '../../modes/all.ts'
import { decideAll } from '../explain/known.ts'
import { knownFromObjects, type NodeOfCluster } from '../explain/read-known.ts'
import { configurationFor } from '../preview/configuration-for.ts'
import type { Side } from './facts.ts'

export function sideOf(node: NodeOfCluster, name: string, families: readonly Family[]): Side {
  const mode = modeNamed(name)
  const config = configurationFor(node.config, mode)
  const known = knownFromObjects({ ...node, config })
  return { mode, config, families: Object.fromEntries(families.map((family) => [family, decideAll(known, family)])) }
}
