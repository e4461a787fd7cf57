// The packet-flow table: what happens to a packet, written once for every mode. See packet-flow.ts for the words.

import { affinityCases } from './cases/affinity.ts'
import { balanceCases } from './cases/balance.ts'
import { clusterIpCases } from './cases/cluster-ip.ts'
import { endpointCases } from './cases/endpoints.ts'
import { endsCases } from './cases/ends.ts'
import { externalCases } from './cases/external.ts'
import { limitsCases } from './cases/limits.ts'
import { localhostCases } from './cases/localhost.ts'
import { nodePortCases } from './cases/node-port.ts'
import { oddCases } from './cases/odd.ts'
import { pingCases } from './cases/ping.ts'
import { settingsCases } from './cases/settings.ts'
import { withoutLocalCases } from './cases/without-local.ts'
import type { PacketFlowCase } from './packet-flow.ts'

export const packetFlowCases: readonly PacketFlowCase[] = [
  ...clusterIpCases,
  ...nodePortCases,
  ...localhostCases,
  ...externalCases,
  ...endpointCases,
  ...endsCases,
  ...affinityCases,
  ...pingCases,
  ...balanceCases,
  ...limitsCases,
  ...settingsCases,
  ...withoutLocalCases,
  ...oddCases,
]
