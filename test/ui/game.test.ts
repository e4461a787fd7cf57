// The game, played to the end: each failure is one that clients notice and that doctor finds, and mending takes all of it away.

import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { plants } from '../../src/ui/protocol.ts'
import { levels } from '../../src/ui/page/game/levels.ts'
import { patience } from '../support/patience.ts'
import { findBarriers } from './support/axe.ts'
import { chromiumPath, goTo, openPage } from './support/browser.ts'
import { startSandboxPage, type SandboxPage } from './support/sandbox-page.ts'

describe.skipIf(chromiumPath === undefined)('the game (needs Chromium)', () => {
  let stage: SandboxPage
  let page: Page
  let complaints: readonly string[]
  beforeAll(async () => {
    stage = await startSandboxPage()
    ;({ page, complaints } = await openPage(stage.browser, stage.url))
    page.setDefaultTimeout(20_000 * patience())
    await goTo(page, 'Game')
    await page.getByRole('button', { name: 'Break it' }).click()
  })
  afterAll(async () => {
    await stage[Symbol.asyncDispose]()
  })

  test('every failure that can be planted is a level', () => {
    expect(levels.map(({ failure }) => failure).sort()).toEqual(plants.filter((each) => each !== 'none').sort())
  })

  test.for(levels.map((level, i) => [level.failure, level, i + 1] as const))(
    '%s: clients fail, doctor finds it, and the solution says why',
    async ([failure, { cause, lesson }, number]) => {
      await page.getByText(`failure ${number} of ${levels.length}`).waitFor()
      await page.locator('.fares b.bad').waitFor()
      const score = await page.getByTestId('score').textContent()
      await expect
        .poll(
          async () => {
            await page.getByRole('button', { name: 'Ask doctor' }).click()
            await page.locator('.doctor [role=status] :is([data-finding], .yes)').first().waitFor()
            return page
              .locator('.doctor [data-finding]')
              .getAttribute('data-finding', { timeout: 1000 })
              .catch(() => 'none')
          },
          { timeout: 20_000 * patience(), interval: 500 },
        )
        .toBe(failure)
      if (number === 1) {
        expect(await findBarriers(page)).toEqual([])
        await page.getByRole('button', { name: 'A hint' }).click()
        await page.getByRole('button', { name: levels[3]!.cause, exact: true }).click()
        await page.getByText('Not that. 1 wrong so far.').waitFor()
      }
      await page.getByRole('button', { name: cause, exact: true }).click()
      await page.getByText(lesson).waitFor()
      await page.locator(`.step-result [data-finding="${failure}"]`).waitFor()
      await page.locator('.step-result .way').waitFor()
      const points = number === 1 ? 50 : 100
      await page.getByText(`${Number.parseInt(score ?? '', 10) + points} points`).waitFor()
      await page.getByRole('button', { name: 'Mend it, and the next' }).click()
    },
  )

  test('in the end all is mended', async () => {
    await page.getByText('950 of 1000 points').waitFor()
    await goTo(page, 'Map')
    await page.getByText(/A client asks default\/whoami from the machine outside/).waitFor()
    await page.getByText(/[1-9]\d+ answered, 0 failed/).waitFor()
    await page.locator('.map .pod:not(.is-bad):not(.is-off)').nth(2).waitFor()
    await page.getByRole('link', { name: /^Service default\/whoami/ }).click()
    await page.getByRole('button', { name: 'Ask doctor', exact: true }).click()
    await page.getByText(/^Nothing is wrong/).waitFor()
    expect(complaints).toEqual([])
  })
})
