// axe-core's rules, on the page as it is drawn.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const script = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Violation {
  readonly id: string
  readonly help: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
}

/** What is wrong, as lines. */
export async function findBarriers(page: Page): Promise<string[]> {
  // Through the protocol of the browser: the page's own policy would not allow it.
  await page.evaluate(script)
  const violations = (await page.evaluate('axe.run(document).then(({ violations }) => violations)')) as Violation[]
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.slice(0, 8).map(({ html, failureSummary }) => `${id}: ${help}: ${html.slice(0, 160)} ${failureSummary}`),
  )
}
