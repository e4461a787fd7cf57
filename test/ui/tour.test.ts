// The tour, from end to end, as a newcomer takes it.

import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { patience } from '../support/patience.ts'
import { findBarriers } from './support/axe.ts'
import { chromiumPath, goTo, openPage } from './support/browser.ts'
import { startSandboxPage, type SandboxPage } from './support/sandbox-page.ts'

/** What is to be seen of each step. */
const seen: readonly RegExp[] = [
  /No interface of the machine outside, 2 nodes and \d+ pods has 10\.96\./,
  /\d\d answered, 0 failed/,
  /connected, and went to 10\.244\.\d\.\d+:3000/,
  /\d+ transactions? with \d+ operations; the slowest reached the kernel/,
  /were back [\d.]+ m?s after the program began to flush them/,
  /it runs again as process \d+/,
  /Clients of Service whoami whose pod does not answer get another.*failed 0 times/,
]
const MOST_MS = 4 * 60_000

describe.skipIf(chromiumPath === undefined)('the tour (needs Chromium)', () => {
  let stage: SandboxPage
  let page: Page
  let complaints: readonly string[]
  beforeAll(async () => {
    stage = await startSandboxPage()
    ;({ page, complaints } = await openPage(stage.browser, stage.url))
    page.setDefaultTimeout(20_000 * patience())
    await goTo(page, 'Tour')
  })
  afterAll(async () => {
    await stage[Symbol.asyncDispose]()
  })

  test('a newcomer who knows only what the page says takes every step, in less than four minutes', async () => {
    const startedMs = performance.now()
    const main = page.locator('.tour-step .buttons button.is-main')
    const words = page.getByTestId('step-words')
    for (const [i, proof] of seen.entries()) {
      await page.getByText(`step ${i + 1} of ${seen.length}`).waitFor()
      const announced = await words.textContent()
      await main.click()
      await page.locator('.tour-step .buttons button.is-main', { hasText: /^Next$/ }).waitFor()
      // What was announced still stands there.
      expect(await words.textContent()).toBe(announced)
      expect(await page.locator('.tour-step').textContent()).toMatch(proof)
      expect(await page.locator('.lesson').textContent()).not.toBe('')
      // The effect is on the map, too.
      await page.getByRole('group', { name: 'Map of the cluster' }).waitFor()
      if (i > 0) await page.locator('[data-edge].is-flowing').first().waitFor()
      if (i === 3) await expect.poll(() => page.locator('.map .pod').count(), { timeout: 10_000 * patience() }).toBe(6)
      if (i === 6) await page.locator('.map .pod.is-bad').first().waitFor()
      await main.click()
    }
    expect(performance.now() - startedMs).toBeLessThan(MOST_MS)
  })

  test('ends with all that was seen, and puts everything back', async () => {
    await page.getByText('7 of 7 steps seen').waitFor()
    expect(await findBarriers(page)).toEqual([])
    await page.getByRole('button', { name: 'Put everything back' }).click()
    await page.getByText('step 1 of 7').waitFor()
    const { spec } = await stage.sandbox.api.get('/apis/apps/v1/namespaces/default/deployments/whoami')
    expect(spec.replicas).toBe(3)
    const { metadata } = await stage.sandbox.api.get('/api/v1/namespaces/default/services/whoami')
    expect(metadata.annotations ?? {}).not.toHaveProperty('service.kube-proxy-ts.io/connect-retry')
    expect(complaints).toEqual([])
  })
})
