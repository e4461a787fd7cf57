// `kube-proxy check` on a kernel with IPVS: the ipvs mode can run, and looking at it changes nothing.

import { afterEach, beforeEach, expect, test } from 'vitest'
import { configurationFromFlags } from '../../src/cli/apply-flags.ts'
import { parseFlags } from '../../src/cli/parse-flags.ts'
import { modes } from '../../src/modes/all.ts'
import { lookForIpvs, readPresentIpvs } from '../../src/modes/ipvs/look.ts'
import { readMachineState } from '../support/machine-state.ts'
import { openTestNetwork, type TestNetwork } from '../support/netns/test-network.ts'

let network: TestNetwork
beforeEach(async () => {
  network = await openTestNetwork()
})
afterEach(() => network[Symbol.asyncDispose]())

const { loaded } = configurationFromFlags(parseFlags(['--proxy-mode=ipvs']).given, modes)
const options = { config: loaded.config, families: [4, 6] } as const
const look = () => network.node.enter(() => ({ ...lookForIpvs(options), present: readPresentIpvs(options) }))

test('a clean node lacks nothing, and stays clean', () => {
  const before = readMachineState(network.node)
  expect(look()).toMatchObject({ lacks: [], present: [] })
  expect(readMachineState(network.node)).toEqual(before)
})

test('what the Go kube-proxy leaves is found, and left', () => {
  network.node.ip(['link add kube-ipvs0 type dummy'])
  network.node.run('ipvsadm', ['-A', '-t', '10.2.0.1:80', '-s', 'rr'])
  const before = readMachineState(network.node)
  expect(look()).toMatchObject({ lacks: [], present: ['link kube-ipvs0', '1 virtual server'] })
  expect(readMachineState(network.node)).toEqual(before)
})
