// The alerts and the dashboard of deploy/monitoring, as Prometheus itself reads them.

import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { checkout } from '../support/checkout.ts'
import { debianProgram } from '../support/debian-program.ts'
import { dashboardExpressions } from '../support/monitoring.ts'

const folder = mkdtempSync(join(tmpdir(), 'alerts-'))
let promtool: string
beforeAll(() => {
  promtool = join(debianProgram('promtool', 'prometheus'), 'promtool')
})
afterAll(() => rmSync(folder, { recursive: true }))

const home = join(checkout, 'deploy/monitoring')

test('the alerts are rules of Prometheus, and fire when they should', () => {
  execFileSync(promtool, ['check', 'rules', join(home, 'alerts.yaml')])
  const { status, stdout, stderr } = spawnSync(promtool, ['test', 'rules', join(home, 'alerts.test.yaml')])
  expect(status, `${stdout.toString()}${stderr.toString()}`).toBe(0)
})

test('their tests notice a wrong expression', () => {
  const alerts = readFileSync(join(home, 'alerts.yaml'), 'utf8')
  const wrong = alerts.replace('kubeproxyts_heals_total[15m]) > 5', 'kubeproxyts_heals_total[15m]) > 50')
  expect(wrong).not.toBe(alerts)
  writeFileSync(join(folder, 'alerts.yaml'), wrong)
  writeFileSync(join(folder, 'alerts.test.yaml'), readFileSync(join(home, 'alerts.test.yaml')))
  const { status, stderr, stdout } = spawnSync(promtool, ['test', 'rules', join(folder, 'alerts.test.yaml')])
  expect(status).not.toBe(0)
  expect(`${stdout.toString()}${stderr.toString()}`).toContain('KubeProxyRulesChangedByOthers')
})

test('what the dashboard asks is in the language of Prometheus', () => {
  const rules = Object.values(dashboardExpressions()).map((expr, i) => ({ record: `panel_${i}`, expr }))
  expect(rules.length).toBeGreaterThan(20)
  writeFileSync(join(folder, 'dashboard.yaml'), stringify({ groups: [{ name: 'dashboard', rules }] }))
  execFileSync(promtool, ['check', 'rules', join(folder, 'dashboard.yaml')])
})
