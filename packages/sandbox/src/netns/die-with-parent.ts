// Loaded into the processes that a sandbox starts (node --import), before anything else: they end when it does, even when
// it is killed.

import { isMainThread } from 'node:worker_threads'
import { dieWithParent } from '../../../../src/system/process.ts'

// Node loads it into every thread of the process.
if (isMainThread) {
  const parent = Number(process.env['KUBE_PROXY_SANDBOX_PID'])
  delete process.env['KUBE_PROXY_SANDBOX_PID']
  dieWithParent()
  // It may have ended before it could be followed.
  if (process.ppid !== parent) process.exit(1)
}
