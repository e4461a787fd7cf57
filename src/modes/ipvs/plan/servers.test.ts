import { describe, expect, test } from 'vitest'
import { nodeView, service, slice } from '../../../../test/support/kube-objects.ts'
import { ProblemLog } from '../../../model/problems.ts'
import { ServiceModel } from '../../../model/service-model.ts'
import type { Service } from '../../../kube/types.ts'
import { formatServers } from '../../../ipvs/format.ts'
import { WEIGHTS_ANNOTATION } from '../../../model/weights.ts'
import { planServers } from './servers.ts'

const node = nodeView()
const nodePortAddresses = ['192.168.0.1', '192.168.1.1']

function plan(wish: Partial<Service>, { scheduler = 'rr', endpoints = ['10.1.0.1', '10.1.1.1'] } = {}): string[] {
  const problems = new ProblemLog(() => {})
  const model = new ServiceModel({ node, problems, allowExternalIPs: true, startedMs: 0 })
  model.setService(service(wish))
  model.setSlice(slice(endpoints))
  model.takeChanges()
  const planned = [...model.views()].flatMap((view) => planServers(node, view, { scheduler, nodePortAddresses }))
  return formatServers(planned).trimEnd().split('\n')
}

const clusterIP = service().clusterIPs[0]!

describe('planServers()', () => {
  test('gives a cluster IP a virtual server with a destination for each endpoint', () => {
    expect(plan({})).toEqual([
      `-A -t ${clusterIP}:80 -s rr`,
      `-a -t ${clusterIP}:80 -r 10.1.0.1:8080 -m -w 1`,
      `-a -t ${clusterIP}:80 -r 10.1.1.1:8080 -m -w 1`,
    ])
  })

  test('gives a node port one for each address on which it is open', () => {
    const ports = [{ name: '', protocol: 'TCP' as const, port: 80, nodePort: 30080 }]
    const lines = plan({ type: 'NodePort', ports }, { endpoints: ['10.1.0.1'] })
    expect(lines.filter((line) => line.startsWith('-A'))).toEqual([
      `-A -t ${clusterIP}:80 -s rr`,
      '-A -t 192.168.0.1:30080 -s rr',
      '-A -t 192.168.1.1:30080 -s rr',
    ])
  })

  test('makes affinity persistence', () => {
    expect(plan({ sessionAffinity: 'ClientIP', affinityTimeoutSeconds: 90 })[0]).toBe(
      `-A -t ${clusterIP}:80 -s rr -p 90`,
    )
  })

  test('hashes the client port with mh, as kube-proxy does', () => {
    expect(plan({}, { scheduler: 'mh' })[0]).toBe(`-A -t ${clusterIP}:80 -s mh -b mh-port`)
    expect(plan({}, { scheduler: 'sh' })[0]).toBe(`-A -t ${clusterIP}:80 -s sh`)
  })

  test('heeds weights', () => {
    const lines = plan({ annotations: { [WEIGHTS_ANNOTATION]: '10.1.0.1=7,10.1.1.1=2' } })
    expect(lines.slice(1).map((line) => line.split(' -m ')[1])).toEqual(['-w 7', '-w 2'])
  })

  test.each([
    ['rr', 'wrr'],
    ['lc', 'wlc'],
    ['sed', 'sed'],
  ])('uses for %s a scheduler that looks at weights, where there are any: %s', (scheduler, wanted) => {
    const weighed = { annotations: { [WEIGHTS_ANNOTATION]: '10.1.0.1=7' } }
    expect(plan(weighed, { scheduler })[0]).toBe(`-A -t ${clusterIP}:80 -s ${wanted}`)
    expect(plan({}, { scheduler })[0]).toBe(`-A -t ${clusterIP}:80 -s ${scheduler}`)
  })

  test('plans servers without destinations where there are no endpoints', () => {
    expect(plan({}, { endpoints: [] })).toEqual([`-A -t ${clusterIP}:80 -s rr`])
  })
})
