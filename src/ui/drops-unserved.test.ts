import { expect, test } from 'vitest'
import { aClusterIpView } from '../../test/support/cluster-ip-view.ts'
import { describePort } from '../serve/control/port-state.ts'
import type { Frontend, ServicePortView, Verdict } from '../model/types.ts'
import { dropsUnserved } from './drops-unserved.ts'

const drop: Verdict = { kind: 'drop', reason: 'has no local endpoints' }
const reject: Verdict = { kind: 'reject', reason: 'has no endpoints' }

/** The port `ns/web` with frontends at these addresses, port 80, where others meet these verdicts. */
function web(verdicts: Readonly<Record<string, Verdict>>): ServicePortView {
  const view = aClusterIpView('10.0.0.1', [])
  const frontends = Object.entries(verdicts).map(([address, verdict]): Frontend => ({
    ...view.frontends[0]!,
    address: address === '*' ? undefined : address,
    fromOthers: { verdict, masquerade: false },
  }))
  return { ...view, name: 'ns/web', frontends }
}

const ports = [
  web({ '10.96.0.1': drop, '110.96.0.1': reject, '*': drop }),
  web({ 'fd00::1': drop, '1:fd00::1': reject }),
].map(describePort)

test.each([
  ['tcp 10.96.0.1:80', true],
  ['tcp 110.96.0.1:80', false],
  ['tcp *:80', true],
  ['tcp [fd00::1]:80', true],
  ['tcp [1:fd00::1]:80', false],
  ['tcp 0.96.0.1:80', false],
])('%s drops what it does not serve: %s', (frontend, expected) => {
  expect(dropsUnserved(ports, 'ns/web', frontend)).toBe(expected)
  expect(dropsUnserved(ports, 'ns/other', frontend)).toBe(false)
})
