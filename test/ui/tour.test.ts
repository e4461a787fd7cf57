// The tour, from end to end, as a newcomer takes it.

import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { patience } from '../support/patience.ts'
import { findBarriers } from './support/axe.ts'
import { chromiumPath, goTo, openPage } from './support/browser.ts'
import { startSandboxPage, type SandboxPage } from './support/sandbox-page.ts'

/** What is done, and what is to be seen of it. */
const steps: readonly (readonly [button: string, seen: RegExp])[] = [
  ['Look for it', /No interface of the machine outside, 2 nodes and \d+ pods has 10\.96\./],
  ['Start the client', /\d\d answered, 0 failed/],
  ['Send a packet', /connected, and went to 10\.244\.\d\.\d+:3000/],
  ['Scale up', /\d+ transactions? with \d+ operations; the slowest reached the kernel/],
  ['Flush the rules', /another program had changed the rules/],
  ['Kill the proxy', /it runs again as process \d+/],
  ['Kill a pod', /failed 0 times/],
]

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

  test.for(steps.map((step, i) => [i + 1, ...step] as const))('step %i: %s', async ([number, button, seen]) => {
    await page.getByText(`step ${number} of 7`).waitFor()
    await page.getByRole('button', { name: button, exact: true }).click()
    await page.getByRole('button', { name: 'Next', exact: true }).waitFor()
    expect(await page.locator('.tour-step').textContent()).toMatch(seen)
    expect(await page.locator('.lesson').textContent()).not.toBe('')
    await page.getByRole('button', { name: 'Next', exact: true }).click()
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
