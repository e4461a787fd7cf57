// Without root, and without a look at the kernel.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { runCommand } from './run-command.ts'
import { formatPlan, formatPlanJson, formatScripts } from '../diagnose/preview/format.ts'
import { colourful, plain } from '../diagnose/paint.ts'
import type { Preview } from '../diagnose/preview/preview-mode.ts'

let folder: string
let out: string
let errors: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'preview-'))
  out = errors = ''
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => ((out += String(text)), true))
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => ((errors += String(text)), true))
})
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(folder, { recursive: true })
})

const manifest = `
apiVersion: v1
kind: Node
metadata: { name: node-1 }
status: { addresses: [{ type: InternalIP, address: 192.168.0.7 }] }
---
apiVersion: v1
kind: Service
metadata: { name: web, namespace: default }
spec: { type: NodePort, clusterIP: 10.0.0.80, clusterIPs: [10.0.0.80], ports: [{ port: 80, nodePort: 30080, protocol: TCP }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, namespace: default, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: '', port: 8080, protocol: TCP }]
endpoints: [{ addresses: [10.1.0.1], conditions: { ready: true } }]
`

describe('kube-proxy render', () => {
  test.each([
    ['nftables', 'nft', /10\.0\.0\.80 \. tcp \. 80 \. 0 : 10\.1\.0\.1 \. 8080/],
    ['iptables', 'iptables-restore', /^-A KUBE-SERVICES -d 10\.0\.0\.80\/32 .*--dport 80 -j KUBE-SVC-/m],
    ['ipvs', 'ipvsadm', /^-A -t 192\.168\.0\.7:30080 -s rr\n-a -t 192\.168\.0\.7:30080 -r 10\.1\.0\.1:8080 -m -w 1$/m],
    ['ipvs', 'ip', /^link add kube-ipvs0 type dummy\naddress add 10\.0\.0\.80\/32 dev kube-ipvs0$/m],
    ['userspace', 'nft', /10\.0\.0\.80 \. tcp \. 80 : 192\.168\.0\.7 \. 40\d\d\d/],
  ])('prints the %s mode for %s, of a node that is elsewhere', async (mode, program, wanted) => {
    writeFileSync(join(folder, 'web.yaml'), manifest)
    const flags = [`--mode=${mode}`, '--manifests', folder, '--node=node-1', '--family=4', `--for=${program}`]
    expect([await runCommand(['render', ...flags]), errors.includes('Cannot')], errors).toEqual([0, false])
    expect(out).toMatch(wanted)
    expect(out).not.toMatch(/^# for/m)
  })

  test('names the flag that is wrong, its value and what is allowed', async () => {
    expect(await runCommand(['render', '--mode=nft', `--manifests=${folder}`])).toBe(1)
    expect(await runCommand(['render', '--for', 'tc', `--manifests=${folder}`])).toBe(1)
    expect(await runCommand(['render', `--manifests=${folder}/none`])).toBe(1)
    expect(errors).toMatch(/--mode must be one of iptables, ipvs, nftables, userspace, not "nft"/)
    expect(errors).toMatch(/--for must be one of nft, .* not "tc"/)
    expect(errors).toMatch(/Cannot read manifests in .*none/)
    expect(out).toBe('')
  })
})

const previews: readonly Preview[] = [
  { mode: 'ipvs', family: 4, dryRun: undefined, problem: 'no IPVS' },
  {
    mode: 'nftables',
    family: 4,
    dryRun: {
      scripts: [
        { program: 'nft', text: 'add element a\ndelete element b\nadd element c\n' },
        { program: 'ipvsadm', text: '' },
      ],
      remarks: ['One more thing'],
    },
  },
  { mode: 'nftables', family: 6, dryRun: { scripts: [{ program: 'nft', text: '' }], remarks: [] } },
]
const plan = { source: 'files', nodeName: 'node-1', shown: 'nftables', previews }

test('a plan for people', () => {
  expect(formatPlan({ ...plan, limit: 2 }, plain)).toBe(`Node node-1, from files. Nothing was changed.

  ipvs      IPv4  not possible: no IPVS
* nftables  IPv4  3 lines for nft
* nftables  IPv6  nothing to do: the kernel has all of it

IPv4, for nft -f -:
  add element a
  delete element b
  ... and 1 more (--limit)

One more thing
`)
  expect(formatPlan({ ...plan, limit: 2 }, colourful)).toContain('\u001b[31mdelete element b\u001b[0m')
})

test('a plan for programs', () => {
  expect(JSON.parse(formatPlanJson(plan))).toMatchObject({
    mode: 'nftables',
    plans: [
      { mode: 'ipvs', ipFamily: 'IPv4', problem: 'no IPVS', commands: null },
      { commands: 3, scripts: [{ program: 'nft', lines: ['add element a', 'delete element b', 'add element c'] }, {}] },
      { ipFamily: 'IPv6', commands: 0 },
    ],
  })
})

test('scripts of several programs have headings', () => {
  const two = [
    {
      ...previews[1]!,
      dryRun: {
        scripts: [
          { program: 'nft', text: 'a\n' },
          { program: 'ipvsadm', text: 'b\n' },
        ],
        remarks: [],
      },
    },
  ] as const
  expect(formatScripts(two, undefined)).toBe('# for nft -f -\na\n\n# for ipvsadm -R\nb\n')
  expect(formatScripts(two, 'ipvsadm')).toBe('b\n')
})
