import { expect, test } from 'vitest'
import { aNodeView } from '../../test/support/arbitrary-views.ts'
import { systemClock } from '../lib/clock.ts'
import { silentLogger } from '../lib/log.ts'
import { ProblemLog } from '../model/problems.ts'
import { ServiceModel } from '../model/service-model.ts'
import { ProxyHealth } from '../serve/proxy-health.ts'
import { FamilyPipeline } from './family-pipeline.ts'
import type { FlowCleaner } from './flow-cleaner.ts'
import { createMetrics } from '../metrics/metrics.ts'
import type { SyncStats } from '../modes/programmer.ts'

const build = { major: '1', minor: '36', version: 'v1.36.0', commit: '', buildDate: '' }
const DONE: SyncStats = { transactions: 0, operations: 0, bytes: 0 }

test('stop() closes the programmer when rules that are being restored are in place, and not before', async () => {
  const node = aNodeView()
  const happened: string[] = []
  let finish: () => void = () => {}
  const programmer = {
    sync: () => DONE,
    syncAll: () => {
      happened.push('begun')
      return new Promise<SyncStats>((resolve) => {
        finish = () => {
          happened.push('restored')
          resolve(DONE)
        }
      })
    },
    close: () => void happened.push('closed'),
  }
  const pipeline = new FamilyPipeline({
    node,
    model: new ServiceModel({ node, problems: new ProblemLog(() => {}), allowExternalIPs: true, startedMs: 0 }),
    programmer,
    flows: { clean() {} } as unknown as FlowCleaner,
    metrics: createMetrics({ shown: [], build }),
    health: new ProxyHealth({ clock: systemClock, timeoutMs: 60_000 }),
    periods: { minMs: 0, maxMs: 60_000, retryMs: 1000, maxRetryMs: 1000 },
    clock: systemClock,
    log: silentLogger,
    onSynced: () => {},
  })
  pipeline.start()
  await new Promise((resolve) => setTimeout(resolve, 5))
  finish()
  await new Promise((resolve) => setTimeout(resolve, 5))
  pipeline.heal()
  const stopped = pipeline.stop()
  await new Promise((resolve) => setTimeout(resolve, 5))
  expect(happened).toEqual(['begun', 'restored', 'begun'])
  finish()
  await stopped
  expect(happened).toEqual(['begun', 'restored', 'begun', 'restored', 'closed'])
})
