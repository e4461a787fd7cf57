// deploy/monitoring and the components that use it: every metric exists, every alert is tested, and both copies are the same.
// That the expressions are right is for promtool to say: test/release/alerts.test.ts.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { renderKustomization } from '../support/kustomize.ts'
import { alertExpressions, dashboardExpressions, metricsIn, readMonitoring } from '../support/monitoring.ts'

const deploy = join(import.meta.dirname, '../../deploy')
const reference = readFileSync(join(import.meta.dirname, '../../docs/reference/metrics.md'), 'utf8')
const documented = new Map(
  [...reference.matchAll(/^\| `(\w+)` \| (\w+) \| ([^|]*) \|/gm)].map(([, name, kind, labels]) => [
    name!,
    { kind, labels },
  ]),
)

const expressions = { ...alertExpressions(), ...dashboardExpressions() }

describe('alerts and dashboard', () => {
  it('name metrics that exist, and say rate() of what counts', () => {
    const used = new Set(Object.values(expressions).flatMap(metricsIn))
    expect(used.size).toBeGreaterThan(20)
    // Prometheus itself makes `up`.
    const unknown = [...used].filter((name) => name !== 'up' && kindOf(name) === undefined)
    expect(unknown).toEqual([])
    for (const [where, expression] of Object.entries(expressions)) {
      for (const [, name] of expression.matchAll(/\b(?:rate|increase)\((\w+)/g)) {
        expect(['counter', 'histogram'], `${where}: ${name}`).toContain(kindOf(name!))
      }
    }
  })

  it('do not know a metric that does not exist', () => {
    expect(kindOf('kubeproxyts_no_such_total')).toBeUndefined()
    expect(metricsIn('sum by (instance, le) (rate(a_bucket{b=~"c.*"}[5m])) > 1 unless on (d) e offset 10m')).toEqual([
      'a_bucket',
      'e',
    ])
  })

  it('are sent by labels that the metrics have', () => {
    const given = ['instance', 'job', 'le']
    for (const [where, expression] of Object.entries(expressions)) {
      const names = metricsIn(expression).filter((name) => name !== 'up')
      const labels = names.flatMap((name) =>
        [...documented.get(baseOf(name))!.labels!.matchAll(/`(\w+)`/g)].map(([, label]) => label!),
      )
      for (const label of labelsIn(expression)) expect([...labels, ...given], `${where}: ${label}`).toContain(label)
    }
  })

  it('have a test that sets each alert off, and one that does not', () => {
    const { tests } = readMonitoring('alerts.test.yaml') as {
      tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[]
    }
    const cases = tests.flatMap((each) => each.alert_rule_test)
    const names = Object.keys(alertExpressions())
    expect(names.length).toBeGreaterThan(10)
    for (const name of names) {
      const outcomes = cases
        .filter(({ alertname }) => alertname === name)
        .map(({ exp_alerts }) => exp_alerts.length > 0)
      expect(outcomes, name).toEqual(expect.arrayContaining([true, false]))
    }
  })

  it('are the same for the operator', async () => {
    const metadata = { name: 'kube-proxy-ts', namespace: 'kube-system', labels: { 'k8s-app': 'kube-proxy-ts' } }
    const spec = readMonitoring('alerts.yaml')
    const rule = { apiVersion: 'monitoring.coreos.com/v1', kind: 'PrometheusRule', metadata, spec }
    const text = `# Made of ../../monitoring/alerts.yaml by a test: npm run golden.\n${stringify(rule, { lineWidth: 0, singleQuote: true })}`
    await expect(text).toMatchFileSnapshot(join(deploy, 'components/prometheus-operator/prometheus-rule.yaml'))
  })
})

it('the PodMonitor and the Service find the port that the component opens', () => {
  const components = ['metrics', 'prometheus-operator'].map((name) => join(deploy, 'components', name))
  const objects = renderKustomization(join(deploy, 'overlays/nftables'), components)
  const find = (kind: string) => objects.find((object) => object.kind === kind)?.['spec']
  const { template } = find('DaemonSet') as {
    template: { metadata: { labels: object }; spec: { containers: [{ args: string[]; ports: object[] }] } }
  }
  const [container] = template.spec.containers
  expect(container.args).toContain('--metrics-bind-address=0.0.0.0:10249')
  expect(container.ports).toEqual([{ name: 'metrics', containerPort: 10249 }])
  const monitor = find('PodMonitor') as { selector: { matchLabels: object }; podMetricsEndpoints: [{ port: string }] }
  expect(monitor.podMetricsEndpoints[0].port).toBe('metrics')
  const service = find('Service') as { selector: object; ports: object[] }
  expect(service.ports).toEqual([{ name: 'metrics', port: 10249, targetPort: 'metrics' }])
  expect(template.metadata.labels).toMatchObject(monitor.selector.matchLabels)
  expect(template.metadata.labels).toMatchObject(service.selector)
})

/** `histogram` for each of the series of one. */
function kindOf(name: string): string | undefined {
  const own = documented.get(name)
  if (own !== undefined) return own.kind === 'histogram' ? undefined : own.kind
  return name !== baseOf(name) && documented.get(baseOf(name))?.kind === 'histogram' ? 'histogram' : undefined
}

function baseOf(name: string): string {
  return documented.has(name) ? name : name.replace(/_(bucket|sum|count)$/, '')
}

/** Of `by (...)`, `on (...)`, and selectors. */
function labelsIn(expression: string): string[] {
  const lists = [...expression.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, list]) => list!.split(','))
  const selected = [...expression.matchAll(/[{,]\s*(\w+)\s*(?:=|!=|=~|!~)"/g)].map(([, label]) => label!)
  return [...lists, ...selected].map((label) => label.trim()).filter((label) => label !== '')
}

it('the dashboard shows each panel once, and asks the data source that is chosen', () => {
  const { panels } = readMonitoring('dashboard.json') as {
    panels: { id: number; type: string; datasource?: { uid: string } }[]
  }
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
  for (const { type, datasource } of panels) if (type !== 'row') expect(datasource?.uid).toBe('${source}')
})
