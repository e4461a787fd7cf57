// npm run images: the pictures of the page in docs/images, from a sandbox, as a person would see it: the map in light and in dark, and a
// recording of twenty seconds. The recording needs img2webp (Debian: webp).

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { ask } from '../../sandbox/support/ask.ts'
import { checkout } from '../../support/checkout.ts'
import { eventually } from '../../support/eventually.ts'
import { openPage } from '../support/browser.ts'
import { startSandboxPage, type SandboxPage } from '../support/sandbox-page.ts'

const images = join(checkout, 'docs', 'images')
const FRAME_MS = 250
const FRAMES = 20_000 / FRAME_MS
const LARGEST_RECORDING = 1_500_000
const RETRY = { metadata: { annotations: { 'service.kube-proxy-ts.io/connect-retry': 'on' } } }

await takePictures()
await record()

/** A shop on three nodes: a Service without pods, a pod that refuses, and one that is ejected because it does. */
async function takePictures(): Promise<void> {
  await using stage = await startSandboxPage('--nodes', '3')
  const { api } = stage.sandbox
  await api.create('/api/v1/namespaces', { metadata: { name: 'shop' } })
  for (const [name, replicas] of [
    ['cart', 2],
    ['payments', 0],
    ['search', 4],
    ['web', 2],
  ] as const) {
    await createApp(stage, name, replicas)
  }
  await api.patch('/api/v1/namespaces/shop/services/cart', RETRY)
  const { page } = await openPage(stage.browser, stage.url, { viewport: { width: 1180, height: 1000 } })
  await eventually(
    'all pods are there',
    async () => ((await page.locator('.map .pod:not(.is-off)').count()) === 11 ? undefined : 'not yet'),
    { withinMs: 20_000 },
  )
  const clients = new AbortController()
  const asking = askAll(stage, clients.signal)
  await sleep(3000)
  await fail(stage, 'shop', 'cart')
  await fail(stage, 'default', 'whoami')
  await page.locator('.map .pod .word', { hasText: 'ejected' }).first().waitFor()
  await page.locator('[data-failing].is-refused').first().waitFor()
  await sleep(6000)
  for (const theme of ['light', 'dark'] as const) {
    await page.getByRole('combobox', { name: 'Theme' }).selectOption(theme)
    await sleep(300)
    await page.screenshot({ path: join(images, `page-${theme}.png`) })
  }
  clients.abort()
  await asking
}

/** It opens alive; a pod refuses; with connect retry no client notices; it is healed. */
async function record(): Promise<void> {
  await using stage = await startSandboxPage()
  const options = { viewport: { width: 1280, height: 720 }, colorScheme: 'light' } as const
  const { page } = await openPage(stage.browser, stage.url, options)
  await page.locator('[data-edge].is-flowing').first().waitFor()
  await sleep(2000)
  const folder = mkdtempSync(join(tmpdir(), 'page-recording-'))
  try {
    const pod = page.getByRole('link', { name: /^Pod default\/whoami/ }).first()
    const service = page.getByRole('link', { name: /^Service default\/whoami/ })
    const acts: Readonly<Record<number, () => Promise<void>>> = {
      8: () => pod.click(),
      13: () => press(page, /^Make .* refuse$/),
      34: () => service.click(),
      39: () => page.getByRole('group', { name: 'connect retry' }).getByRole('button', { name: 'on' }).click(),
      60: () => pod.click(),
      65: () => press(page, /^Heal /),
    }
    for (let frame = 0; frame < FRAMES; frame++) {
      const due = performance.now() + FRAME_MS
      await acts[frame]?.()
      await page.screenshot({ path: join(folder, `${String(frame).padStart(3, '0')}.png`) })
      await sleep(Math.max(0, due - performance.now()))
    }
    assemble(folder, join(images, 'page.webp'))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function assemble(folder: string, file: string): void {
  const frames = Array.from({ length: FRAMES }, (_, i) => join(folder, `${String(i).padStart(3, '0')}.png`))
  const args = [
    '-loop',
    '0',
    '-mixed',
    '-min_size',
    '-d',
    String(FRAME_MS),
    '-q',
    '60',
    '-m',
    '4',
    ...frames,
    '-o',
    file,
  ]
  const { error, status, stderr } = spawnSync('img2webp', args, { encoding: 'utf8' })
  if (error !== undefined || status !== 0) throw new Error(`Cannot run img2webp: ${error?.message ?? stderr}`)
  const { size } = statSync(file)
  console.log(`${file}: ${size} bytes`)
  if (size > LARGEST_RECORDING) throw new Error(`The recording has ${size} bytes, and may have ${LARGEST_RECORDING}`)
}

function press(page: Page, name: RegExp): Promise<void> {
  return page.getByRole('complementary').getByRole('button', { name }).click()
}

async function createApp({ sandbox }: SandboxPage, name: string, replicas: number): Promise<void> {
  const labels = { app: name }
  const containers = [{ name, image: 'whoami', ports: [{ containerPort: 3000 }] }]
  await sandbox.api.create('/apis/apps/v1/namespaces/shop/deployments', {
    metadata: { name },
    spec: { replicas, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
  })
  await sandbox.api.create('/api/v1/namespaces/shop/services', {
    metadata: { name },
    spec: {
      selector: labels,
      ports: [{ port: 80, targetPort: 3000 }],
      ...(name === 'web' ? { type: 'LoadBalancer' } : {}),
    },
  })
}

/** Clients of the shop, a few times a second, until they are told to end. */
async function askAll({ sandbox }: SandboxPage, signal: AbortSignal): Promise<void> {
  const { items } = await sandbox.api.get('/api/v1/namespaces/shop/services')
  const services = (items as { metadata: { name: string }; spec: { clusterIP: string } }[]).map(
    ({ metadata, spec }) => [metadata.name, spec.clusterIP] as const,
  )
  using from = await sandbox.place('machine')
  const rates: Readonly<Record<string, number>> = { cart: 4, payments: 1, search: 8, web: 5 }
  await Promise.all(
    services.map(async ([name, ip]) => {
      while (!signal.aborted) {
        void ask(from, ip, 80)
        await sleep(1000 / (rates[name] ?? 1))
      }
    }),
  )
}

async function fail({ sandbox }: SandboxPage, namespace: string, app: string): Promise<void> {
  const pods = `/api/v1/namespaces/${namespace}/pods`
  const { items } = await sandbox.api.get(`${pods}?labelSelector=app%3D${app}`)
  await sandbox.api.patch(`${pods}/${items[0].metadata.name}`, {
    metadata: { annotations: { 'sandbox/fail': 'refuse' } },
  })
}
