// Every button of Hands on, with what it does to the cluster and to the kernel, and the command that does the same.

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { chromiumPath, goTo, openPage } from './support/browser.ts'
import { askNode, eventuallyOnNode, startSandboxPage, type SandboxPage } from './support/sandbox-page.ts'

describe.skipIf(chromiumPath === undefined)('hands on (needs Chromium)', () => {
  let stage: SandboxPage
  let page: Page
  let service: { clusterIP: string; externalTrafficPolicy: string }
  beforeAll(async () => {
    stage = await startSandboxPage()
    page = (await openPage(stage.browser, stage.url)).page
    service = (await stage.sandbox.api.get('/api/v1/namespaces/default/services/whoami')).spec
    await goTo(page, 'Hands on')
  })
  afterAll(async () => {
    await stage[Symbol.asyncDispose]()
  })

  const press = (name: string | RegExp) =>
    page
      .getByRole('button', { name, exact: typeof name === 'string' })
      .first()
      .click()
  const said = (words: string | RegExp) => page.locator('.deed.is-done').first().getByText(words).waitFor()
  const curl = () =>
    stage.sandbox.run('exec', 'machine', '--', 'curl', '-s', '--max-time', '5', `http://${service.clusterIP}:3000`)
  const podNames = async () => {
    const { items } = await stage.sandbox.api.get('/api/v1/namespaces/default/pods')
    return (items as { metadata: { name: string; deletionTimestamp?: string } }[])
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map(({ metadata }) => metadata.name)
  }

  test('the command of a button is shown before it is pressed, and works at a terminal', async () => {
    await page.getByRole('button', { name: 'One pod of whoami more' }).hover()
    const command = page.getByTestId('command')
    await command.getByText('kubectl scale deployment whoami --replicas=4').waitFor()
    const env = { ...process.env, KUBECONFIG: stage.sandbox.path('kubeconfig') }
    const { status, stderr } = spawnSync('sh', ['-c', (await command.locator('code').textContent())!], {
      encoding: 'utf8',
      env,
    })
    expect([status, stderr]).toEqual([0, ''])
    await page.getByText('4 of 4 ready').waitFor()
  })

  test('scale', async () => {
    await press('One pod of whoami less')
    await said('Deployment default/whoami is to have 3 pods')
    await page.getByText('3 of 3 ready').waitFor()
    await eventuallyOnNode(
      stage.sandbox,
      'node-1',
      ['nft', 'list', 'map', 'ip', 'kube-proxy', 'service-endpoints'],
      (text) =>
        text.includes(`${service.clusterIP} . tcp . 3000 . 2 :`) &&
        !text.includes(`${service.clusterIP} . tcp . 3000 . 3 :`),
    )
  })

  test('a client that asks again and again', async () => {
    await press('Stop')
    await said('The load has ended')
    await press('Start')
    await page.getByText(/10 connections per second from outside/).waitFor()
    await eventually(
      'every pod answers',
      async () => {
        const bars = page.getByRole('list', { name: 'Answers by pod' }).getByRole('listitem')
        return (await bars.count()) >= 3 ? undefined : `${await bars.count()} do`
      },
      { withinMs: 10_000 },
    )
    expect(await page.getByTestId('failed').textContent()).toBe('0')
  })

  test('a pod that refuses, hangs, dies, and is well again', async () => {
    const [pod] = await podNames()
    for (const how of ['refuse', 'hang', 'die'] as const) {
      await press(`Make ${pod} ${how}`)
      await said(`Pod ${pod} is to ${how}`)
      const { metadata } = await stage.sandbox.api.get(`/api/v1/namespaces/default/pods/${pod}`)
      expect(metadata.annotations['sandbox/fail']).toBe(how)
    }
    await page.getByText(/died/).first().waitFor()
    await press(`Heal ${pod}`)
    await said(`Pod ${pod} is well again`)
    await page.getByText('3 of 3 ready').waitFor()
  })

  test('a pod that is deleted is replaced', async () => {
    const [pod] = await podNames()
    await press(`Delete ${pod}`)
    await said(`Pod ${pod} is going`)
    await eventually('another has come', async () => {
      const names = await podNames()
      return names.length === 3 && !names.includes(pod!) ? undefined : names.join()
    })
  })

  test('traffic policies and affinity', async () => {
    const choice = (words: string, value: string) =>
      page
        .locator('[data-service="default/whoami"]')
        .getByRole('group', { name: words })
        .getByRole('button', { name: value })
    await choice('external traffic', 'Local').click()
    await said('Service whoami has externalTrafficPolicy Local')
    await eventuallyOnNode(
      stage.sandbox,
      'node-1',
      ['nft', 'list', 'set', 'ip', 'kube-proxy', 'served-ips-local'],
      (text) => text.includes('. tcp . 3000'),
    )
    await eventually('the page shows it', async () =>
      (await choice('external traffic', 'Local').getAttribute('aria-pressed')) === 'true' ? undefined : 'not yet',
    )
    await choice('external traffic', 'Cluster').click()
    await choice('internal traffic', 'Local').click()
    await said('Service whoami has internalTrafficPolicy Local')
    await choice('internal traffic', 'Cluster').click()
    await choice('affinity', 'ClientIP').click()
    await said('Service whoami has sessionAffinity ClientIP')
    await eventually('one pod answers all', () => {
      const names = new Set(Array.from({ length: 6 }, () => curl().stdout))
      return names.size === 1 ? undefined : [...names].join()
    })
    await choice('affinity', 'None').click()
    await choice('connect retry', 'on').click()
    await said(/whose pod does not answer get another/)
    await eventually('the page shows it', async () =>
      (await choice('connect retry', 'on').getAttribute('aria-pressed')) === 'true' ? undefined : 'not yet',
    )
  })

  test('rules that are flushed come back', async () => {
    await press('Flush its rules: node-1')
    await said('The rules of node-1 are gone')
    await eventuallyOnNode(stage.sandbox, 'node-1', ['nft', 'list', 'ruleset'], (text) =>
      text.includes(service.clusterIP),
    )
    await goTo(page, 'Changes')
    await page.getByText('another program had changed the rules').first().waitFor()
    await goTo(page, 'Hands on')
  })

  test('a proxy that is killed is started again', async () => {
    const pidOf = async () => (await stage.sandbox.status()).nodes[0]!.proxyPid
    const before = await pidOf()
    await press('Kill its proxy: node-1')
    await said(`The proxy of node-1, process ${before}, is killed`)
    await eventually('another runs', async () => {
      const now = await pidOf()
      return now !== undefined && now !== before ? undefined : `it is ${now}`
    })
    await page
      .locator('[data-node="node-1"]')
      .getByText(/, 1 restart/)
      .waitFor()
  })

  test('an API server that is away, and back', async () => {
    await press('Take it away')
    await page.getByRole('banner').getByText('API server away').waitFor()
    const reaches = () =>
      stage.sandbox.run('exec', 'node-1', '--', 'curl', '-sk', '--max-time', '3', 'https://10.96.0.1/version')
        .status === 0
    expect(reaches()).toBe(false)
    expect(curl().stdout).toContain('viola from')
    await press('Bring it back')
    await page.getByText('The nodes reach the API server').waitFor()
    await eventually('a node reaches it', () => (reaches() ? undefined : 'not yet'))
  })

  test('another mode for a node', async () => {
    await page.getByRole('group', { name: 'mode of node-2' }).getByRole('button', { name: 'iptables' }).click()
    await said('The proxy of node-2 runs in mode iptables')
    await eventuallyOnNode(stage.sandbox, 'node-2', ['iptables-save', '-t', 'nat'], (text) =>
      text.includes('KUBE-SVC-'),
    )
    expect(askNode(stage.sandbox, 'node-2', 'nft', 'list', 'tables')).not.toContain('table ip kube-proxy\n')
    await goTo(page, 'Map')
    await page.getByRole('link', { name: /^Node node-2, mode iptables/ }).waitFor()
    await goTo(page, 'Hands on')
  })

  test('a mode that this kernel cannot run: the reason is said, and the node stays as it is', async () => {
    const mode = page.getByRole('group', { name: 'mode of node-1' })
    await mode.getByRole('button', { name: 'ipvs' }).click()
    const deed = page.locator('.deed').first()
    await deed.filter({ has: page.locator('code', { hasText: 'mode node-1 ipvs' }) }).waitFor()
    await page.locator('.deed:first-child:is(.is-failed, .is-done)').waitFor()
    const answer = (await deed.locator('p').textContent()) ?? ''
    if (existsSync('/proc/net/ip_vs')) {
      expect(answer).toBe('The proxy of node-1 runs in mode ipvs')
      return
    }
    expect(answer).toMatch(/^Cannot start the proxy of node-1: .*(IPVS|ip_vs).*; it runs in mode nftables, as before$/)
    await eventually('the page shows the mode in force', async () =>
      (await mode.getByRole('button', { name: 'nftables' }).getAttribute('aria-pressed')) === 'true'
        ? undefined
        : 'not yet',
    )
    expect(await mode.getByRole('button', { name: 'ipvs' }).getAttribute('aria-pressed')).toBe('false')
    expect(askNode(stage.sandbox, 'node-1', 'nft', 'list', 'tables')).toContain('table ip kube-proxy\n')
    expect(curl().stdout).toContain('viola from')
  })

  test('the client ends with a click', async () => {
    await press('Stop')
    await page.getByText('(ended)').waitFor()
  })

  test('what was done can be copied', async () => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const deed = page.locator('.deed').last()
    await deed.getByRole('button', { name: 'Copy the command' }).click()
    await deed.getByText('copied').waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(
      (await deed.locator('code').allTextContents()).join('\n'),
    )
  })
})
