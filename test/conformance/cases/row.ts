import type { PacketFlowCase } from '../packet-flow.ts'

/** A row, with what most rows do not say filled in. */
export function row(
  name: string,
  rest: Partial<PacketFlowCase> & Pick<PacketFlowCase, 'objects' | 'flows'>,
): PacketFlowCase {
  return { name, settings: {}, steps: [], ...rest }
}
