import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { nodeAddresses, peer } from '../../../test/support/addresses.ts'
import { aService, aSlice } from '../../../test/support/builders.ts'
import { complaintsBySchema } from '../../../test/support/json-schema.ts'
import { decodeObjects, nodeViewOf } from '../../../test/support/planned-node.ts'
import { plannedWalkables } from '../../../test/support/planned-walkable.ts'
import { modeNamed } from '../../modes/all.ts'
import { explain, type KernelState, prepare } from './explain.ts'
import { formatMermaid } from './format-mermaid.ts'
import { formatSvg } from './format-svg.ts'
import { formatText } from './format-text.ts'
import { decideAll, type Known } from './known.ts'
import { colourful, paintFor } from '../paint.ts'
import type { Question } from './question.ts'

const schema = JSON.parse(readFileSync(new URL('../../../docs/reference/explain.schema.json', import.meta.url), 'utf8'))

const web = aService({ name: 'web', type: 'NodePort', ports: [{ name: 'http', port: 80, nodePort: 30080 }] })
const foreign = aService({ name: 'foreign', labels: { 'service.kubernetes.io/service-proxy-name': 'mesh' } })
const headless = aService({ name: 'headless', clusterIPs: ['None'] })
const empty = aService({ name: 'empty', ports: [{ name: 'http' }] })
const local = aService({ name: 'local', spec: { internalTrafficPolicy: 'Local' } })

const known: Known = {
  source: 'a test',
  hasObjects: true,
  mode: modeNamed('nftables'),
  nodes: { 4: nodeViewOf(4, {}, ['primary']), 6: nodeViewOf(6, {}, ['primary']) },
  machineAddresses: nodeAddresses,
  ...decodeObjects([
    web,
    aSlice(web, ['localA', { pod: 'localB', ready: false }, 'remoteA'], {
      ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    }),
    foreign,
    headless,
    empty,
    aSlice(empty, ['localB'], { ports: [{ name: 'web', protocol: 'TCP', port: 8080 }] }),
    local,
    aSlice(local, ['remoteA']),
  ]),
  allowExternalIPs: true,
  localhostNodePorts: true,
  connectRetry: false,
  ejected: new Map(),
  otherNodes: [{ name: peer.name, addresses: [peer.ip[4]] }],
  pods: [{ namespace: 'default', name: 'client', ips: ['10.1.0.11'], nodeName: 'node-a' }],
}

function ask(question: Question) {
  const explanation = explain(prepare(known, question), undefined)
  expect(complaintsBySchema(schema, explanation)).toEqual([])
  return explanation
}

async function kernel(): Promise<KernelState> {
  const decided = decideAll(known, 4)!
  const walkable = await plannedWalkables.nftables(decided.node, [...decided.model.views()])
  return { kind: 'walkable', walkable, when: 'planned', nowMs: 0 }
}

const ip = web.spec.clusterIPs[0]!

describe('near misses', () => {
  it.each([
    ['wrong port', `${ip}:81`, /wrong port: it is 80\/TCP/],
    ['wrong protocol', `${ip}:80/udp`, /wrong protocol: it is TCP, not UDP/],
    ['address of another node', `${peer.ip[4]}:30080`, /address of another node: .* is node-b/],
    ['a node port that is not open there', '10.3.0.20:30080', /not open on 10\.3\.0\.20/],
    ['service of another proxy', `${foreign.spec.clusterIPs[0]}:80`, /service of another proxy: .*"mesh"/],
    ['a pod', '10.1.0.11:8080', /this is a pod, not a Service/],
  ])('%s', (_, to, why) => {
    const { misses, outcome } = ask({ from: 'client', to })
    expect(outcome).not.toBe('to')
    expect(misses.map((miss) => miss.why).join('\n')).toMatch(why)
  })

  it.each([
    ['default/wbe', /There is no Service default\/wbe; the nearest name is default\/web/],
    ['shop/web', /There is no Service shop\/web; there is default\/web/],
    ['default/headless', /is headless/],
    ['default/web:ftp', /has no port named "ftp", but http 80\/TCP/],
    ['10.2.0.1', /without a port/],
    ['http://', /Cannot read/],
  ])('a question that cannot be asked: %s', (to, message) => {
    expect(() => ask({ from: 'client', to })).toThrow(message)
  })

  it('a client that is not known', () => {
    expect(() => ask({ from: 'cliemt', to: 'default/web' })).toThrow(/There is no pod "cliemt".*default\/client/)
  })
})

describe('the words for a destination', () => {
  it.each([
    'web',
    'default/web',
    'web.default',
    'web.default.svc.cluster.local:80',
    'http://web',
    'default/web:http',
    `tcp://${ip}:80`,
    `${ip}:80/tcp`,
  ])('%s', (to) => {
    expect(ask({ from: 'client', to }).frontend).toMatchObject({ servicePort: 'default/web:http', kind: 'clusterIP' })
  })

  it('from outside, a node port', () => {
    expect(ask({ from: 'outside', to: 'web' }).frontend?.kind).toBe('nodePort')
  })
})

describe('reasons', () => {
  it('of an endpoint whose port has another name', () => {
    const { outcome, problems } = ask({ from: 'client', to: 'empty' })
    expect(outcome).toBe('reject')
    expect(problems.join()).toMatch(/1 endpoints, but none for port http\/TCP: they have web 8080\/TCP/)
  })

  it('of a policy', () => {
    const { outcome, backends, policy } = ask({ from: 'client', to: 'local' })
    expect(outcome).toBe('drop')
    expect(policy).toMatchObject({ field: 'internalTrafficPolicy', value: 'Local' })
    expect(backends).toMatchObject([{ eligible: false, why: 'not on this node, and the policy is Local' }])
  })

  it('of an ejected backend', () => {
    const ejecting = { ...known, connectRetry: true, ejected: new Map([['10.1.0.11:8080', 'until noon']]) }
    const { backends } = explain(prepare(ejecting, { from: 'node', to: 'web' }), undefined)
    expect(backends.find(({ address }) => address === '10.1.0.11')).toMatchObject({
      eligible: false,
      why: 'ejected: until noon',
    })
  })
})

describe('the choice at connect()', () => {
  const choosing = { ...known, socketBalancing: '/sys/fs/cgroup/kubepods.slice' }
  const atConnect = (question: Question) => explain(prepare(choosing, question), undefined).atConnect

  it('is for those whom it may concern', () => {
    expect(atConnect({ from: 'client', to: 'web' })).toContain('a process of the cgroup /sys/fs/cgroup/kubepods.slice')
    const text = formatText(explain(prepare(choosing, { from: 'node', to: 'web' }), undefined))
    expect(text).toMatch(/^connect\(\)\s+a process of the cgroup/m)
  })

  it('is nothing to others', () => {
    expect(ask({ from: 'client', to: 'web' }).atConnect).toBeNull()
    expect(atConnect({ from: 'outside', to: 'web' })).toBeNull()
    expect(atConnect({ from: 'client', to: 'empty' })).toBeNull()
    const retrying = { ...choosing, connectRetry: true }
    expect(explain(prepare(retrying, { from: 'client', to: 'web' }), undefined).atConnect).toBeNull()
  })
})

describe('the kernel', () => {
  it('agrees with what was decided', async () => {
    const explanation = explain(prepare(known, { from: 'client', to: 'web' }), await kernel())
    expect(explanation).toMatchObject({ agreement: 'agrees', outcome: 'to' })
    expect(complaintsBySchema(schema, explanation)).toEqual([])
    expect(formatText(explanation)).toContain('the kernel does what the proxy decided')
  })

  it('differs, and that is the headline', async () => {
    const other = { ...known, slices: known.slices.filter(({ serviceName }) => serviceName !== 'web') }
    const explanation = explain(prepare(other, { from: 'client', to: 'web' }), await kernel())
    expect(explanation.agreement).toBe('differs')
    expect(formatText(explanation)).toMatch(
      /^The kernel does not do what the proxy decided: decided: refused; in the kernel: sent to an endpoint/,
    )
  })

  it('may have nothing of the mode', () => {
    const explanation = explain(prepare(known, { from: 'client', to: 'web' }), {
      kind: 'nothing',
      what: 'the nftables mode',
    })
    expect(explanation.headline).toMatch(/the kernel has nothing of this mode/)
  })
})

describe('formats', () => {
  it('text has colours on a terminal alone, and none where the user wants none', () => {
    expect(paintFor({ isTTY: true }, {})).toBe(colourful)
    expect(paintFor({ isTTY: true }, { NO_COLOR: '1' })('bad', 'x')).toBe('x')
    expect(paintFor({}, {})('bad', 'x')).toBe('x')
    expect(formatText(ask({ from: 'client', to: 'web' }), colourful)).toContain('\x1b[32m')
  })

  it('pictures are well-formed whatever names are in them', async () => {
    const explanation = explain(prepare(known, { from: 'client', to: 'web' }), await kernel())
    const hostile = `</text><script>alert("1")</script>&amp;\u0000\u0008\u001b[31m\uD800`
    const named = {
      ...explanation,
      headline: hostile,
      kernel: {
        ...explanation.kernel!,
        ways: explanation.kernel!.ways.map((way) => ({ ...way, destination: hostile })),
      },
    }
    const svg = formatSvg(named)
    expect(svg).not.toMatch(/<script|[\p{Cs}]/u)
    expect(svg.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
    expect(svg.match(/<text /g)).toHaveLength(svg.match(/<\/text>/g)!.length)
    expect(formatMermaid(named)).not.toMatch(/<script/)
    expect(svg).toContain('fill="#fafafa"')
  })

  it('pictures show each hook and each end', async () => {
    const explanation = explain(prepare(known, { from: 'client', to: 'web' }), await kernel())
    const svg = formatSvg(explanation)
    const mermaid = formatMermaid(explanation)
    for (const text of [
      'prerouting',
      'postrouting',
      ...explanation.kernel!.ways.map(({ destination }) => destination),
    ]) {
      expect(svg).toContain(text)
      expect(mermaid).toContain(text)
    }
    expect(svg.match(/<rect /g)?.length).toBe(svg.match(/<rect [^>]*\/>/g)?.length)
    expect(svg).not.toMatch(/&(?!amp;|lt;|gt;|quot;)/)
    expect(mermaid).toMatch(/^flowchart TD\n/)
  })
})
