// A Service broken in every way, and what the map says of it: that is what the clients counted, and where it happened.

import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask } from '../sandbox/support/ask.ts'
import { eventually } from '../support/eventually.ts'
import { chromiumPath, openPage } from './support/browser.ts'
import { askNode, startSandboxPage, type SandboxPage } from './support/sandbox-page.ts'

const pods = '/api/v1/namespaces/default/pods'
const whoami = '/api/v1/namespaces/default/services/whoami'

/** Numbers of connections, as the page words them. */
interface Met {
  readonly answered: number
  readonly refused: number
  readonly 'timed out': number
  readonly 'cut off': number
  readonly retried: number
}

describe.skipIf(chromiumPath === undefined)('failures on the map (needs Chromium)', () => {
  let stage: SandboxPage
  let page: Page
  beforeAll(async () => {
    stage = await startSandboxPage()
    page = (await openPage(stage.browser, stage.url)).page
  })
  afterAll(async () => {
    await stage[Symbol.asyncDispose]()
  })

  const podNames = async () => {
    const { items } = await stage.sandbox.api.get(pods)
    return (items as PodObject[]).filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  }
  const fail = (pod: string, how: string | null) =>
    stage.sandbox.api.patch(`${pods}/${pod}`, { metadata: { annotations: { 'sandbox/fail': how } } })
  /** What the panel of a pod or a service says of connections since the page was opened. */
  const met = async (of: 'service' | 'pod', id: string): Promise<Met> => {
    await page.evaluate(`location.hash = '#/map?${of}=${id}'`)
    await page.getByRole('complementary', { name: `About ${id}` }).waitFor()
    return parseMet((await page.getByTestId('met').textContent()) ?? '')
  }
  /** The page's client as it is asked for, from zero. */
  const startClient = async (more: object = {}) => {
    await page.evaluate(
      `fetch('api/act', { method: 'POST', headers: { 'content-type': 'application/json' }, body: ${JSON.stringify(
        JSON.stringify({ action: 'load', from: 'outside', to: 'default/whoami', perSecond: 20, ...more }),
      )} }).then((response) => response.text())`,
    )
    await page.getByText('A client asks').waitFor()
  }
  const stopClient = async () => {
    await page.evaluate(
      `fetch('api/act', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"action":"load-end"}' }).then((response) => response.text())`,
    )
  }
  /** Stops the client: what it counted, from the bar above the map. */
  const stopAndCount = async (): Promise<Met> => {
    await page.getByRole('button', { name: 'Stop the client' }).click()
    await page.getByText('The client asked').waitFor()
    return counted()
  }
  const counted = async (): Promise<Met> => {
    const text = (await page.locator('.fares').textContent()) ?? ''
    return parseMet(text.replace(/\d+ failed/, ''))
  }
  /** Changes until the totals of the page have not moved for a while: what is under way is counted by then. */
  const settled = async (read: () => Promise<Met>): Promise<Met> => {
    let last = JSON.stringify(await read())
    let since = performance.now()
    await eventually(
      'the totals stand still',
      async () => {
        const now = JSON.stringify(await read())
        if (now !== last) [last, since] = [now, performance.now()]
        return performance.now() - since > 2500 ? undefined : now
      },
      { withinMs: 15_000, everyMs: 200 },
    )
    return JSON.parse(last) as Met
  }
  const minus = (after: Met, before: Met) =>
    Object.fromEntries(
      Object.entries(after).map(([name, count]) => [name, count - before[name as keyof Met]]),
    ) as unknown as Met

  test('the page is alive from the first second', async () => {
    await page.locator('[data-edge].is-flowing').first().waitFor()
    await page.getByText(/A client asks default\/whoami from the machine outside, 10 times a second/).waitFor()
    await page.getByRole('link', { name: 'Take the tour' }).waitFor()
    await eventually('the charts have something to show', async () => {
      const path = await page.locator('.curve.is-connections .curve-line').getAttribute('d')
      return /L/.test(path ?? '') ? undefined : `${path}`
    })
    expect(await page.locator('[data-failing]').count()).toBe(0)
  })

  test.for([
    ['refuse', 'refused', 'ECONNREFUSED'],
    ['hang', 'timed out', 'silent'],
  ] as const)('clients of a pod that is told to %s: %s, and only there', async ([how, word, errno]) => {
    await stopClient()
    const names = (await podNames()).map(({ metadata }) => metadata.name)
    const victim = names[0]!
    await fail(victim, how)
    const read = () => met('pod', `default/${victim}`)
    const before = await settled(read)
    const { spec } = await stage.sandbox.api.get(whoami)
    using from = await stage.sandbox.place('machine')
    const asked = Promise.all(Array.from({ length: 30 }, () => ask(from, spec.clusterIP, 3000)))
    // The line is red while it is so, and says how.
    await page.locator(`[data-failing="default/whoami>default/${victim}"]`).waitFor()
    await page.locator('.line-label', { hasText: word }).waitFor()
    const outcomes = await asked
    const failed = outcomes.filter((outcome) => typeof outcome === 'string')
    expect(failed.length).toBeGreaterThan(0)
    expect(new Set(failed)).toEqual(new Set([errno]))
    const there = minus(await settled(read), before)
    expect(there).toMatchObject({ answered: 0, [word]: failed.length })
    await fail(victim, null)
  })

  test.for(['refuse', 'die', 'hang'] as const)(
    'the page’s own client, a pod that is told to %s: what it counted stands on the map',
    async (how) => {
      const victim = (await podNames())[0]!.metadata.name
      await stopClient()
      const id = 'default/whoami'
      const before = await settled(() => met('service', id))
      await startClient()
      await eventually('it is answered', async () => ((await counted()).answered > 5 ? undefined : 'not yet'), {
        withinMs: 10_000,
      })
      await fail(victim, how)
      const isRed = page.locator('.map .pod.is-bad')
      await isRed.waitFor()
      if (how !== 'die') {
        await eventually(
          'clients fail',
          async () => {
            const { refused, 'timed out': timedOut } = await counted()
            return refused + timedOut > 3 ? undefined : 'not yet'
          },
          { withinMs: 15_000 },
        )
        await page.locator(`[data-failing="default/whoami>default/${victim}"]`).first().waitFor()
        await page.locator(`[data-failing="outside>default/whoami"]`).first().waitFor()
        expect(await page.locator('.map .outside .word').textContent()).toMatch(
          how === 'refuse' ? /^refused/ : /^timed out/,
        )
      }
      await fail(victim, null)
      await eventually('it is well again', async () => ((await isRed.count()) === 0 ? undefined : 'it is red'), {
        withinMs: 15_000,
      })
      const client = await stopAndCount()
      expect(minus(await settled(() => met('service', id)), before)).toEqual(client)
    },
  )

  describe('what reaches no pod fails at the service, and no pod is blamed', () => {
    const nodeOfOnlyPod = async () => {
      await scale(1)
      return (await podNames())[0]!.spec.nodeName
    }
    const scale = async (replicas: number) => {
      await stage.sandbox.api.patch('/apis/apps/v1/namespaces/default/deployments/whoami', { spec: { replicas } })
      await eventually('there are so many pods', async () => {
        const all = await podNames()
        return all.length === replicas ? undefined : `${all.length}`
      })
      await eventually('the page shows them', async () =>
        (await page.locator('.map .pod:not(.is-off)').count()) === replicas ? undefined : 'not yet',
      )
    }
    const patch = (spec: object) => stage.sandbox.api.patch(whoami, { spec })
    const otherNode = (node: string) => (node === 'node-1' ? 'node-2' : 'node-1')
    const nothing = async () => ({})

    test.for<{
      readonly what: string
      readonly word: 'refused' | 'timed out'
      /** Breaks it, and says how the client is to ask. */
      readonly damage: () => Promise<object>
      readonly mend: () => Promise<unknown>
    }>([
      { what: 'no endpoints', word: 'refused', damage: () => scale(0).then(nothing), mend: () => scale(3) },
      {
        what: 'a foreign drop rule',
        word: 'timed out',
        damage: async () => {
          const rules =
            'table inet other { chain forward { type filter hook forward priority 0; ip daddr 10.244.0.0/16 drop; }; }'
          for (const node of ['node-1', 'node-2']) askNode(stage.sandbox, node, 'nft', rules)
          return {}
        },
        mend: async () => {
          for (const node of ['node-1', 'node-2']) askNode(stage.sandbox, node, 'nft', 'delete table inet other')
        },
      },
      {
        what: 'policy Local, and no pod on the node of the client',
        word: 'timed out',
        damage: async () => {
          const from = otherNode(await nodeOfOnlyPod())
          await patch({ internalTrafficPolicy: 'Local' })
          return { from }
        },
        mend: async () => {
          await patch({ internalTrafficPolicy: 'Cluster' })
          await scale(3)
        },
      },
      {
        what: 'source ranges that the client is not in',
        word: 'timed out',
        damage: async () => {
          await patch({ loadBalancerSourceRanges: ['192.0.2.0/24'] })
          return { via: 'loadBalancerIP' }
        },
        mend: () => patch({ loadBalancerSourceRanges: null }),
      },
    ])('$what: $word', async ({ word, damage, mend }) => {
      const id = 'default/whoami'
      await stopClient()
      const ask = await damage()
      const before = await settled(() => met('service', id))
      await startClient(ask)
      const turnedAway = page.locator(`[data-turned-away="${id}"]`)
      await turnedAway.waitFor()
      expect(await turnedAway.textContent()).toMatch(new RegExp(`^${word} [\\d.]+/s$`))
      expect(await page.locator('.line-label').count()).toBe(0)
      expect(await page.locator('.map .pod.is-bad').count()).toBe(0)
      await eventually('several fail', async () => ((await counted())[word] > 10 ? undefined : 'not yet'), {
        withinMs: 15_000,
      })
      const client = await stopAndCount()
      expect(minus(await settled(() => met('service', id)), before)).toEqual(client)
      expect(client[word]).toBeGreaterThan(10)
      await mend()
      await eventually('nothing is turned away any more', async () =>
        (await turnedAway.count()) === 0 ? undefined : 'it is',
      )
    })
  })

  test('with connect retry, a pod that refuses is retried: a colour of its own, and no failure', async () => {
    await stopClient()
    await stage.sandbox.api.patch(whoami, {
      metadata: { annotations: { 'service.kube-proxy-ts.io/connect-retry': 'on' } },
    })
    await eventually('every node retries', () =>
      ['node-1', 'node-2'].every((node) =>
        askNode(stage.sandbox, node, 'nft', 'list', 'tables').includes('kube-proxy-retry'),
      )
        ? undefined
        : 'not yet',
    )
    const id = 'default/whoami'
    const before = await settled(() => met('service', id))
    await startClient({ perSecond: 50 })
    await page.locator('[data-edge].is-flowing').first().waitFor()
    await fail((await podNames())[0]!.metadata.name, 'refuse')
    await page.locator('[data-failing].is-retried').first().waitFor()
    await page
      .getByText(/ejected/)
      .first()
      .waitFor()
    const client = await stopAndCount()
    const there = minus(await settled(() => met('service', id)), before)
    expect(there.retried).toBeGreaterThan(0)
    expect({ ...there, retried: 0 }).toEqual({ ...client, retried: 0 })
    expect(client).toMatchObject({ refused: 0, 'timed out': 0 })
  })
})

interface PodObject {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string }
  readonly spec: { readonly nodeName: string }
}

function parseMet(text: string): Met {
  const count = (word: string) => Number(new RegExp(`(\\d+) ${word}`).exec(text)?.[1] ?? 0)
  return {
    answered: count('answered'),
    refused: count('refused'),
    'timed out': count('timed out'),
    'cut off': count('cut off'),
    retried: count('retried'),
  }
}
