// What kube-proxy leaves on a node with the services of the rehearsed swap. To write the recordings again:
//
//     sudo GO_KUBE_PROXY=/usr/local/bin/kube-proxy npx vitest run --project e2e test/e2e/swap-recordings.test.ts -u
//
// and for the ipvs mode the same behind `node test/uml/run.mjs --share test/e2e/fixtures --`.

import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isWritten } from '../support/is-written.ts'
import { openRig, type Rig } from '../support/rig.ts'
import {
  kubeProxyModes,
  kubeProxyProgram,
  readRecording,
  recordingFile,
  startKubeProxy,
  whyNoKubeProxy,
} from '../support/swap/kube-proxy.ts'
import { swapObjects } from '../support/swap/objects.ts'

describe.skipIf(kubeProxyProgram === undefined)('the rules that kube-proxy leaves (needs GO_KUBE_PROXY)', () => {
  let rig: Rig
  beforeAll(async () => {
    rig = await openRig()
    rig.cluster.put(...swapObjects)
  })
  afterAll(() => rig[Symbol.asyncDispose]())

  test.for(kubeProxyModes)('in %s mode are those of the recording', async (mode, { skip }) => {
    const reason = whyNoKubeProxy(mode)
    if (reason !== undefined) return skip(reason)
    const proxy = await startKubeProxy(rig, mode)
    await proxy.stop()
    for (const [part, text] of Object.entries(readRecording(rig.network.node, mode))) {
      const file = recordingFile(mode, part)
      if (isWritten) writeFileSync(file, text)
      expect(linesOf(text)).toEqual(linesOf(readFileSync(file, 'utf8')))
    }
  })
})

/** In any order: kube-proxy writes services in that of its maps, which is another each time. */
function linesOf(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .sort()
}
