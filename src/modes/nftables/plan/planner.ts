// The face of the nftables mode.

import type { TablePlanner } from '../../../table-sync/table-planner.ts'
import { adoptPlaces } from './adopt.ts'
import { planBase } from './base.ts'
import { LIST_MAPS, listLengths } from './lists.ts'
import { TABLE } from './names.ts'
import { servedUdpFrontends } from './served.ts'
import { placeKey, planFragment, planningFragment } from './service.ts'

export const nftablesPlanner: TablePlanner = {
  table: TABLE,
  base: planBase,
  service: planFragment,
  planning: planningFragment,
  adopt: adoptPlaces,
  lists: { maps: LIST_MAPS, lengths: listLengths, placeKey },
  servedUdp: servedUdpFrontends,
}
