// The map as the place to act: what is clicked on offers what can be done to it, and watching stays in view.

import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { patience } from '../support/patience.ts'
import { findBarriers } from './support/axe.ts'
import { chromiumPath, openPage } from './support/browser.ts'
import { eventuallyOnNode, startSandboxPage, type SandboxPage } from './support/sandbox-page.ts'

describe.skipIf(chromiumPath === undefined)('acting on the map (needs Chromium)', () => {
  let stage: SandboxPage
  beforeAll(async () => {
    stage = await startSandboxPage()
  })
  afterAll(async () => {
    await stage[Symbol.asyncDispose]()
  })

  const panelOf = (page: Page) => page.getByRole('complementary')
  const press = (page: Page, name: string | RegExp) =>
    panelOf(page)
      .getByRole('button', { name, exact: typeof name === 'string' })
      .click()

  describe.each([
    ['a desk', { width: 1440, height: 900 }],
    ['a phone', { width: 375, height: 800 }],
  ] as const)('at %s', (_, viewport) => {
    let page: Page
    beforeAll(async () => {
      page = (await openPage(stage.browser, stage.url, { viewport, hasTouch: viewport.width < 500 })).page
    })
    afterAll(async () => {
      await page.context().close()
    })

    test('a pod is broken and healed, in view of what its clients meet', async () => {
      const pod = page.getByRole('link', { name: /^Pod default\/whoami/ }).first()
      await pod.click()
      await press(page, /^Make .* refuse$/)
      await panelOf(page)
        .getByTestId('command')
        .getByText(/kubectl annotate pod .* sandbox\/fail=refuse/)
        .waitFor()
      const red = page.locator('.map .pod.is-bad')
      await red.waitFor()
      // A narrow window has room for the rate alone.
      await page.locator('.line-label', { hasText: viewport.width < 500 ? /^\d.*\/s$/ : /^refused/ }).waitFor()
      await expect
        .poll(() => panelOf(page).getByTestId('met').textContent(), { timeout: 10_000 * patience() })
        .toMatch(/[1-9]\d* refused/)
      // Both are on the screen, and neither covers the other.
      const [seen, panel] = await Promise.all([red.boundingBox(), panelOf(page).boundingBox()])
      expect(seen!.y).toBeGreaterThanOrEqual(0)
      const isBeside = seen!.x + seen!.width <= panel!.x
      expect(isBeside || seen!.y + seen!.height <= panel!.y).toBe(true)
      await press(page, 'Undo')
      await red.waitFor({ state: 'detached' })
      await panelOf(page)
        .getByText(/is well again/)
        .waitFor()
      expect(await findBarriers(page)).toEqual([])
    })
  })

  test('a service offers its policies, a node its proxy; both say what doctor finds', async () => {
    const { page } = await openPage(stage.browser, stage.url)
    await page.getByRole('link', { name: /^Service default\/whoami/ }).click()
    const local = panelOf(page).getByRole('group', { name: 'external traffic' }).getByRole('button', { name: 'Local' })
    await local.click()
    await eventuallyOnNode(
      stage.sandbox,
      'node-1',
      ['nft', 'list', 'set', 'ip', 'kube-proxy', 'served-ips-local'],
      (text) => text.includes('. tcp . 3000'),
    )
    await press(page, 'Undo')
    await panelOf(page)
      .getByText(/externalTrafficPolicy Cluster/)
      .waitFor()
    await press(page, 'One pod of whoami more')
    await expect.poll(() => page.locator('.map .pod').count(), { timeout: 10_000 * patience() }).toBe(4)
    await press(page, 'Undo')
    await expect.poll(() => page.locator('.map .pod').count(), { timeout: 10_000 * patience() }).toBe(3)
    await press(page, 'Ask doctor')
    await panelOf(page)
      .getByText(/^Nothing is wrong/)
      .waitFor()
    await page.getByRole('link', { name: /^Node node-2, mode nftables/ }).click()
    await press(page, 'Flush its rules: node-2')
    await panelOf(page).getByText('The rules of node-2 are gone').waitFor()
    await press(page, 'Ask doctor')
    await panelOf(page)
      .getByText(/^Nothing is wrong/)
      .waitFor()
    await page.context().close()
  })

  test('UDP is marked', async () => {
    const { page } = await openPage(stage.browser, stage.url)
    await page.getByLabel('show system services').check()
    await page.getByRole('link', { name: /^Service kube-system\/kube-dns, 10\.96\.0\.10:53\/UDP 53/ }).waitFor()
    await page.context().close()
  })
})
