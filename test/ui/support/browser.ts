// A real Chromium, as a person has one, without its windows.

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import { checkout } from '../../support/checkout.ts'
import { patience } from '../../support/patience.ts'

/** Undefined: there is none, and none can be installed. */
export const chromiumPath: string | undefined = findChromium()

function findChromium(): string | undefined {
  const { status, stdout } = spawnSync(join(checkout, 'scripts/chromium'), { encoding: 'utf8' })
  return status === 0 ? stdout.trim() : undefined
}

/** In the network namespace of this process. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumPath!,
    // Chromium's own sandbox wants another user than root. No page but ours is opened.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  })
}

export interface OpenedPage {
  readonly page: Page
  /** What a developer would see in the console: errors, and what the policy of the page forbade. */
  readonly complaints: readonly string[]
}

export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<OpenedPage> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    reducedMotion: 'reduce',
    ...options,
  })
  const page = await context.newPage()
  page.setDefaultTimeout(6000 * patience())
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(String(error.stack ?? error)))
  page.on('console', (message) => {
    const { url } = message.location()
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(`${message.text()} ${url}`)
  })
  await page.goto(url)
  await page.getByRole('status').getByText('live').waitFor()
  return { page, complaints }
}

/** Opens a view by its link. */
export async function goTo(page: Page, view: string): Promise<void> {
  await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: view, exact: true }).click()
  await page.getByRole('heading', { level: 1, name: view }).waitFor()
}
