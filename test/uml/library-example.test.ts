// The example in the README of the IPVS library, on a kernel with IPVS.

import { test } from 'vitest'
import { openNetns, restIn } from '../support/netns/netns.ts'
import { checkReadmeExample } from '../support/readme-example.ts'

test('the example in the README of ipvs does what it says', async () => {
  const netns = openNetns('node')
  const resting = restIn(netns)
  try {
    netns.ip(['link set lo up'])
    await checkReadmeExample('ipvs')
  } finally {
    resting[Symbol.dispose]()
    netns.close()
  }
})
