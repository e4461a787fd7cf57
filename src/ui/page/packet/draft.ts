// The packet in the form. It is kept while another view is open; the page's address can name its ends.

import { firstService } from '../parts/first-service.ts'
import type { ExplainQuestion, Snapshot } from '../../protocol.ts'
import { serviceId } from '../map/targets.ts'

export interface Draft {
  /** `outside`, `node`, `NAMESPACE/POD`, an address. */
  readonly from: string
  /** The sending node, if it is from a node; else the node at which it arrives, '' for the nearest. */
  readonly node: string
  readonly to: string
  readonly via: NonNullable<ExplainQuestion['via']> | ''
}

let kept: Draft | null = null

export function startDraft({ services, outside, nodes }: Snapshot, query: Readonly<Record<string, string>>): Draft {
  const service = firstService(services)
  const first: Draft = kept ?? {
    from: outside === null ? 'node' : 'outside',
    node: outside === null ? (nodes[0]?.name ?? '') : '',
    to: service === undefined ? '' : serviceId(service),
    via: '',
  }
  const { from, to, node } = query
  kept = {
    ...first,
    ...(from === undefined ? {} : { from, node: node ?? '' }),
    ...(to === undefined ? {} : { to, via: '' as const }),
  }
  return kept
}

export function keepDraft(draft: Draft): void {
  kept = draft
}

export function questionOf({ from, node, to, via }: Draft, send: boolean): ExplainQuestion {
  return {
    from,
    to,
    ...(node === '' ? {} : { node }),
    ...(via === '' ? {} : { via }),
    ...(send ? { send } : {}),
  }
}
