// The files of deploy/monitoring, and the metrics that an expression of Prometheus names.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { checkout } from './checkout.ts'

export interface AlertRule {
  readonly alert: string
  readonly expr: string
}

export function readMonitoring(name: string): unknown {
  return parse(readFileSync(join(checkout, 'deploy/monitoring', name), 'utf8'))
}

/** By the name of the alert. */
export function alertExpressions(): Record<string, string> {
  const { groups } = readMonitoring('alerts.yaml') as { groups: { rules: AlertRule[] }[] }
  return Object.fromEntries(groups.flatMap(({ rules }) => rules).map(({ alert, expr }) => [alert, expr]))
}

/** By panel and letter, with values in the place of Grafana's own names. */
export function dashboardExpressions(): Record<string, string> {
  interface Panel {
    readonly title: string
    readonly targets?: readonly { readonly refId: string; readonly expr: string }[]
  }
  const { panels } = readMonitoring('dashboard.json') as { panels: Panel[] }
  return Object.fromEntries(
    panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ refId, expr }) => [
        `${title} ${refId}`,
        expr.replaceAll('$__rate_interval', '5m').replaceAll('$node', '.+'),
      ]),
    ),
  )
}

const words = new Set(['and', 'or', 'unless', 'offset', 'by', 'on', 'without', 'ignoring', 'group_left', 'group_right'])

/** Names that are neither functions, nor words of the language, nor labels. */
export function metricsIn(expression: string): string[] {
  const bare = expression
    .replaceAll(/"[^"]*"/g, '')
    .replaceAll(/\{[^}]*\}/g, '')
    .replaceAll(/\[[^\]]*\]/g, '')
    .replaceAll(/\b(by|on|without|ignoring|group_left|group_right)\s*\([^)]*\)/g, ' ')
    .replaceAll(/\boffset\s+\w+/g, ' ')
  return [...bare.matchAll(/\b([a-z_]\w*)\b(?!\s*\()/g)].map(([, name]) => name!).filter((name) => !words.has(name))
}
