// 300 pods that come and go: the map stays readable, and drawing it stays cheap.

import type { CDPSession, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { patience } from '../support/patience.ts'
import { chromiumPath, openPage } from './support/browser.ts'
import { startSandboxPage, type SandboxPage } from './support/sandbox-page.ts'

const PODS = 300
/** At 60 frames per second. */
const FRAME_MS = 16
const FIRST_PAINT_MS = 300
const CHANGES = 40

describe.skipIf(chromiumPath === undefined)('300 pods (needs Chromium)', () => {
  let stage: SandboxPage
  let page: Page
  let session: CDPSession
  beforeAll(async () => {
    stage = await startSandboxPage('--nodes', '3')
    await stage.sandbox.api.patch('/apis/apps/v1/namespaces/default/deployments/whoami', { spec: { replicas: PODS } })
    await eventually(
      'all pods are ready',
      async () => {
        const { status } = await stage.sandbox.api.get('/apis/apps/v1/namespaces/default/deployments/whoami')
        return status.readyReplicas === PODS ? undefined : `${status.readyReplicas} are`
      },
      { withinMs: 60_000, everyMs: 500 },
    )
    page = (await openPage(stage.browser, stage.url)).page
    session = await page.context().newCDPSession(page)
    await session.send('Performance.enable')
  })
  afterAll(async () => {
    await stage[Symbol.asyncDispose]()
  })

  test('are groups with counts, and all of them are in the table', async () => {
    await expect(page.getByRole('link', { name: /^100 pods of whoami on node-\d$/ }).count()).resolves.toBe(3)
    await page.locator('[data-edge].is-flowing').first().waitFor()
    await page.getByRole('button', { name: 'Table' }).click()
    await expect(page.getByRole('link', { name: /^default\/whoami-/ }).count()).resolves.toBe(PODS)
    await page.getByRole('button', { name: 'Map', exact: true }).click()
  })

  test('the sick one is drawn by itself, with what its clients meet', async () => {
    const { items } = await stage.sandbox.api.get('/api/v1/namespaces/default/pods')
    const { name } = (items as { metadata: { name: string } }[])[0]!.metadata
    const fail = (how: string | null) =>
      stage.sandbox.api.patch(`/api/v1/namespaces/default/pods/${name}`, {
        metadata: { annotations: { 'sandbox/fail': how } },
      })
    await fail('refuse')
    const sick = page.getByRole('link', { name: new RegExp(`^Pod default/${name}, .*refuses`) })
    await sick.waitFor()
    await expect(page.getByRole('link', { name: /^99 pods of whoami/ }).count()).resolves.toBe(1)
    await fail(null)
    await sick.waitFor({ state: 'detached' })
  })

  test('the page is painted in time', async () => {
    const times: number[] = []
    for (let i = 0; i < 5; i++) {
      await page.reload()
      await page.getByRole('group', { name: 'Map of the cluster' }).waitFor()
      times.push(
        await page.evaluate<number>('performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0'),
      )
    }
    console.log(`first contentful paint of ${PODS} pods, ms: ${times.map(Math.round).join(', ')}`)
    expect(times.toSorted((a, b) => a - b)[2]).toBeLessThan(FIRST_PAINT_MS * patience())
  })

  test('a frame of the map takes less than a screen’s', async () => {
    await page.evaluate(`(() => {
      window.draws = 0
      new MutationObserver(() => window.draws++).observe(document.body, {
        subtree: true, childList: true, attributes: true, characterData: true,
      })
    })()`)
    const before = await worked(session)
    const { items } = await stage.sandbox.api.get('/api/v1/namespaces/default/pods')
    for (const { metadata } of (items as { metadata: { name: string } }[]).slice(0, CHANGES)) {
      await stage.sandbox.api.delete(`/api/v1/namespaces/default/pods/${metadata.name}`)
    }
    await eventually(
      'all is drawn',
      async () => {
        const draws = await page.evaluate<number>('window.draws')
        const counts = await page.locator('.map .group .address').allTextContents()
        const isCalm = counts.every((text) => /^\d+ pods$/.test(text))
        return draws >= 20 && isCalm ? undefined : `${draws} draws, ${counts.join(', ')}`
      },
      { withinMs: 60_000, everyMs: 500 },
    )
    const draws = await page.evaluate<number>('window.draws')
    const perDraw = ((await worked(session)) - before) / draws
    console.log(`${draws} draws while ${CHANGES} of ${PODS} pods were replaced, ${perDraw.toFixed(1)} ms each`)
    expect(perDraw).toBeLessThan(FRAME_MS * patience())
  })
})

/** How long the page has been busy with scripts, styles and layout, in milliseconds. */
async function worked(session: CDPSession): Promise<number> {
  const { metrics } = await session.send('Performance.getMetrics')
  const of = (name: string) => metrics.find((each) => each.name === name)?.value ?? 0
  return 1000 * (of('ScriptDuration') + of('LayoutDuration') + of('RecalcStyleDuration'))
}
