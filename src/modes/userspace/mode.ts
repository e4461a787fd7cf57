// The descriptor of the userspace mode.

import type { Mode } from '../contract.ts'

export const userspaceMode: Mode = {
  name: 'userspace',
  defaultNodePortAddresses: [],
  changesAreCheap: true,
  restartFields: ['userspace'],
  metrics: ['conntrackDuration', 'conntrackDeleted'],
  weighs: false,
  retries: 'mode',
  serviceLinks: [],
  load: async () => (await import('./machine.ts')).userspaceMachine,
}
