// The Helm chart makes the same objects as the kustomize base. Helm is no package of Debian's or npm's: what it makes of the chart is
// kept in test/golden/chart and made again where there is a helm: HELM=/path/to/helm UPDATE=1 npx vitest run --project unit test/golden/chart.test.ts

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { commands } from '../../src/cli/commands.ts'
import { parseFlags } from '../../src/cli/parse-flags.ts'
import { parseCommand } from '../../src/lib/command.ts'
import { modeNames } from '../../src/modes/all.ts'
import { isWritten } from '../support/is-written.ts'
import { complaintsBySchema } from '../support/json-schema.ts'
import { type Manifest, renderKustomization } from '../support/kustomize.ts'

const deploy = join(import.meta.dirname, '../../deploy')
const chart = join(deploy, 'chart')
const kept = join(import.meta.dirname, 'chart')
const helm = process.env['HELM']

interface Case {
  readonly name: string
  readonly values: object
  readonly components: readonly string[]
  readonly mode: string
}

const somewhere = { apiServer: { host: '10.0.0.1', port: 6443 }, podRange: '10.244.0.0/16' }
const cases: readonly Case[] = [
  ...modeNames.map((mode) => ({ name: mode, mode, values: { ...somewhere, mode }, components: [] })),
  {
    name: 'all-components',
    mode: 'nftables',
    values: {
      ...somewhere,
      onlyLabelledNodes: false,
      iptablesLegacy: true,
      chooseAtConnect: 'pods',
      flowNames: true,
      metrics: { enabled: true, podMonitor: true, prometheusRule: true },
    },
    components: ['choose-at-connect', 'every-node', 'flow-names', 'iptables-legacy', 'metrics', 'prometheus-operator'],
  },
  {
    name: 'kubeadm',
    mode: 'nftables',
    values: { mode: 'nftables', existingConfigMap: 'kube-proxy' },
    components: ['kubeadm'],
  },
]

/** Each mode with and without each component that has a value of the chart. */
function combinations(): Case[] {
  const parts: readonly [component: string, values: object][] = [
    ['choose-at-connect', { chooseAtConnect: 'pods' }],
    ['every-node', { onlyLabelledNodes: false }],
    ['flow-names', { flowNames: true }],
    ['iptables-legacy', { iptablesLegacy: true }],
    ['kubeadm', { existingConfigMap: 'kube-proxy', apiServer: undefined, podRange: undefined }],
    ['metrics', { metrics: { enabled: true } }],
    ['prometheus-operator', { metrics: { enabled: true, podMonitor: true, prometheusRule: true } }],
  ]
  const sets = parts.reduce<(typeof parts)[]>((all, part) => all.flatMap((each) => [each, [...each, part]]), [[]])
  const sound = sets.filter((set) => {
    const names = set.map(([component]) => component)
    // The rule and the monitor are about the port of the other one.
    return !names.includes('prometheus-operator') || names.includes('metrics')
  })
  const hasChoice = (mode: string) => mode === 'nftables' || mode === 'iptables'
  return modeNames.flatMap((mode) =>
    sound
      .filter((set) => hasChoice(mode) || set.every(([component]) => component !== 'choose-at-connect'))
      .map((set) => ({
        name: [mode, ...set.map(([component]) => component)].join(', '),
        mode,
        values: Object.assign({ ...somewhere, mode }, ...set.map(([, values]) => values)) as object,
        components: set.map(([component]) => component),
      })),
  )
}

const { version } = parse(readFileSync(join(chart, 'Chart.yaml'), 'utf8')) as { version: string }

/** What is kept is the same for each version of the program: a release takes no helm. */
function withoutVersion(text: string): string {
  return text.replaceAll(version, 'VERSION')
}

/** Changes with every file of the chart, and with what it is asked for. */
function fingerprint(values: object): string {
  const hash = createHash('sha256')
  for (const name of readdirSync(chart, { recursive: true, encoding: 'utf8' }).sort()) {
    const path = join(chart, name)
    if (!/\.(yaml|tpl|json)$/.test(name) || /schema/.test(name)) continue
    hash.update(name).update(withoutVersion(readFileSync(path, 'utf8')))
  }
  return hash.update(JSON.stringify(values)).digest('hex').slice(0, 16)
}

function renderByHelm(values: object): string {
  return execFileSync(helm!, ['template', 'kube-proxy-ts', chart, '-n', 'kube-system', '-f', '-'], {
    encoding: 'utf8',
    input: stringify(values),
  })
}

function render({ name, values }: Pick<Case, 'name' | 'values'>): Manifest[] {
  const file = join(kept, `${name}.yaml`)
  const head = `# Made by Helm of deploy/chart, ${fingerprint(values)}\n`
  if (isWritten && helm !== undefined) {
    mkdirSync(kept, { recursive: true })
    writeFileSync(file, head + withoutVersion(renderByHelm(values)))
  }
  const text = readFileSync(file, 'utf8')
  // A chart that changed has to be rendered again.
  expect(text.split('\n')[0], file).toBe(head.trim())
  return parseManifests(text)
}

function parseManifests(text: string): Manifest[] {
  return parseAllDocuments(text.replaceAll('VERSION', version)).flatMap(
    (document) => (document.toJS() as Manifest | null) ?? [],
  )
}

/** As both have it: settings by value where kustomize has a ConfigMap, the order of lists of arguments and mounts aside. */
function normal(objects: readonly Manifest[], { values }: Pick<Case, 'values'>): Record<string, unknown> {
  const { apiServer, podRange } = values as { apiServer?: { host: string; port: number }; podRange?: string }
  const settings: Record<string, string> = {
    MODE: (values as { mode?: string }).mode ?? 'nftables',
    POD_RANGE: podRange ?? '',
  }
  const server: Record<string, string> = {
    KUBERNETES_SERVICE_HOST: apiServer?.host ?? '',
    KUBERNETES_SERVICE_PORT: String(apiServer?.port ?? ''),
  }
  const found: Record<string, unknown> = {}
  for (const object of structuredClone(objects) as unknown as (Manifest & { spec: DaemonSetSpec })[]) {
    if (object.kind === 'ConfigMap' || isHook(object)) continue
    if (object.kind === 'DaemonSet') {
      const { spec } = object.spec.template
      for (const container of [...spec.initContainers, ...spec.containers]) {
        container.image = container.image.replace(/^.*\//, '')
        delete container.imagePullPolicy
        container.args = container.args
          .map((arg) => arg.replace(/\$\((MODE|POD_RANGE)\)/, (_, name: string) => settings[name]!))
          .sort()
        container.env = (container.env ?? [])
          .filter(({ name }) => name !== 'MODE' && name !== 'POD_RANGE')
          .map(({ name, ...rest }) => (name in server ? { name, value: server[name] } : { name, ...rest }))
        container.volumeMounts.sort((a, b) => (a.name < b.name ? -1 : 1))
        const { capabilities } = container.securityContext
        // The overlay of iptables and the component iptables-legacy give the same right.
        if (capabilities !== undefined) capabilities.add = [...new Set(capabilities.add)].sort()
      }
      spec.volumes.sort((a, b) => (a.name < b.name ? -1 : 1))
    }
    found[`${object.kind} ${object.metadata.name}`] = object
  }
  return found
}

/** For helm test, which kustomize has not. */
function isHook({ metadata }: Manifest): boolean {
  return Object.hasOwn((metadata as { annotations?: object }).annotations ?? {}, 'helm.sh/hook')
}

interface DaemonSetSpec {
  readonly template: {
    readonly spec: Record<'initContainers' | 'containers', ContainerSpec[]> & { readonly volumes: { name: string }[] }
  }
}

interface ContainerSpec {
  image: string
  imagePullPolicy?: string
  args: string[]
  env?: { name: string; value?: string | undefined }[]
  volumeMounts: { name: string }[]
  readonly securityContext: { readonly capabilities?: { add: string[] } }
}

describe('deploy/chart', () => {
  it.each(cases)('makes of $name what kustomize makes', ({ name, values, components, mode }) => {
    const folders = components.map((each) => join(deploy, 'components', each))
    const byKustomize = normal(renderKustomization(join(deploy, 'overlays', mode), folders), { values })
    expect(normal(render({ name, values }), { values })).toEqual(byKustomize)
  })

  // Without a golden file for each, so only where there is a helm.
  if (helm !== undefined) {
    it.each(combinations())(
      'makes of every combination what kustomize makes: $name',
      ({ values, components, mode }) => {
        const folders = components.map((each) => join(deploy, 'components', each))
        const byKustomize = normal(renderKustomization(join(deploy, 'overlays', mode), folders), { values })
        expect(normal(parseManifests(renderByHelm(values)), { values })).toEqual(byKustomize)
      },
    )
  }

  it('passes flags that the program knows', () => {
    const values = { ...somewhere, connectRetry: 'annotated', extraArgs: ['--v=2'] }
    const objects = render({ name: 'flags', values }) as unknown as (Manifest & { spec: DaemonSetSpec })[]
    const { containers, initContainers } = objects.find(({ kind }) => kind === 'DaemonSet')!.spec.template.spec
    for (const { args } of [...containers, ...initContainers]) expect(parseFlags(args).errors).toEqual([])
    expect(containers[0]!.args).toEqual(expect.arrayContaining(['--connect-retry=annotated', '--v=2']))
  })

  it('writes a configuration into a ConfigMap', () => {
    const values = { apiServer: { host: '10.0.0.1' }, mode: 'ipvs', configuration: { ipvs: { scheduler: 'lc' } } }
    const objects = render({ name: 'configuration', values })
    const { data } = objects.find(({ kind }) => kind === 'ConfigMap') as unknown as { data: Record<string, string> }
    expect(parse(data['config.conf']!)).toEqual({
      apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
      kind: 'KubeProxyConfiguration',
      mode: 'ipvs',
      ipvs: { scheduler: 'lc' },
    })
  })

  it('tests a cluster with what it has installed', () => {
    const objects = render({ name: 'nftables', values: { ...somewhere, mode: 'nftables' } })
    const hooks = objects.filter(isHook)
    expect(hooks.map(({ kind }) => kind).sort()).toEqual(['ClusterRole', 'ClusterRoleBinding', 'Pod', 'ServiceAccount'])
    const pod = hooks.find(({ kind }) => kind === 'Pod') as unknown as { spec: { containers: ContainerSpec[] } }
    const daemonSet = objects.find(({ kind }) => kind === 'DaemonSet') as unknown as { spec: DaemonSetSpec }
    const { image } = daemonSet.spec.template.spec.containers[0]!
    const [container] = pod.spec.containers
    expect(container).toMatchObject({ image, args: ['test', '--image', image] })
    expect(container!.env).toContainEqual({ name: 'KUBERNETES_SERVICE_HOST', value: '10.0.0.1' })
    const [word, ...args] = container!.args
    const spec = commands.find(({ name }) => name === word)
    expect(parseCommand(spec!, args).errors).toEqual([])
  })

  it('has a schema that describes every value, and that its values keep', () => {
    const schema = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8'))
    const values = parse(readFileSync(join(chart, 'values.yaml'), 'utf8')) as object
    expect(complaintsBySchema(schema, values)).toEqual([])
    const undescribed = describedValues(schema).filter(({ description }) => description === '')
    expect(undescribed).toEqual([])
    expect(Object.keys(schema.properties).sort()).toEqual([...Object.keys(values), 'global'].sort())
  })

  it('has a README with every value', () => {
    const schema = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8'))
    const values = parse(readFileSync(join(chart, 'values.yaml'), 'utf8')) as Record<string, unknown>
    const rows = describedValues(schema)
      .filter(({ path }) => path !== 'global' && !path.includes('[]'))
      .map(({ path, description }) => {
        const value = path.split('.').reduce<unknown>((inner, name) => (inner as Record<string, unknown>)[name], values)
        const shown =
          typeof value === 'object' && Object.keys(value as object).length > 0
            ? 'see values.yaml'
            : `\`${JSON.stringify(value)}\``
        return `| \`${path}\` | ${shown} | ${description} |\n`
      })
    const table = `| value | default | what it is |\n| --- | --- | --- |\n${rows.join('')}`
    const file = join(chart, 'README.md')
    const text = readFileSync(file, 'utf8')
    const expected = text.replace(/(<!-- values: .* -->\n)[^]*(<!-- \/values -->)/, `$1\n${table}\n$2`)
    if (isWritten) writeFileSync(file, expected)
    expect(text === expected || isWritten).toBe(true)
  })

  it('has the alerts and the dashboard that are beside it', () => {
    for (const name of ['alerts.yaml', 'dashboard.json']) {
      const source = readFileSync(join(deploy, 'monitoring', name), 'utf8')
      const copy = join(chart, 'files', name)
      if (isWritten) writeFileSync(copy, source)
      expect(existsSync(copy) && readFileSync(copy, 'utf8') === source, name).toBe(true)
    }
  })
})

interface Described {
  readonly description?: string
  readonly properties?: Readonly<Record<string, Described>>
  readonly items?: Described
}

/** Every field of a schema, fields of items of lists included. */
function describedValues(schema: Described, prefix = ''): { path: string; description: string }[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, each]) => [
    { path: `${prefix}${name}`, description: each.description ?? '' },
    ...describedValues(each, `${prefix}${name}.`),
    ...describedValues(each.items ?? {}, `${prefix}${name}[].`),
  ])
}
