import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { patience } from '../../../test/support/patience.ts'
import { createLogger } from '../../lib/log.ts'
import type { ObjectEvent, ResourceHandler } from '../resource-handler.ts'
import { watchManifests } from './watch-manifests.ts'

function service(name: string, clusterIP: string): string {
  return `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}}\nspec: {clusterIP: ${clusterIP}, ports: [{port: 80}]}\n`
}

/** Watches a folder and keeps a list of what the handlers get. */
class Watching {
  readonly folder = mkdtempSync(join(tmpdir(), 'manifests-'))
  readonly events: string[] = []
  readonly log: string[] = []
  readonly #abort = new AbortController()
  #running: Promise<void> = Promise.resolve()

  start(path = this.folder): void {
    const log = createLogger({
      format: ({ severity, message }) => `${severity} ${message.replaceAll(this.folder, 'DIR')}`,
      sink: (_, line) => this.log.push(line),
      verbosity: 0,
      now: Date.now,
    })
    const handlers = {
      services: this.#handler('services'),
      slices: this.#handler('slices'),
      node: this.#handler('node'),
      serviceCidrs: this.#handler('serviceCidrs'),
    }
    this.#running = watchManifests({ path, nodeName: 'box', handlers, log, signal: this.#abort.signal })
    this.#running.catch(() => {})
  }

  #handler<T>(name: string): ResourceHandler<T> {
    return {
      onEvents: (events: readonly ObjectEvent<T>[]) => {
        for (const { type, key } of events) this.events.push(`${name} ${type} ${key}`)
      },
      onSynced: () => this.events.push(`${name} synced`),
    }
  }

  write(file: string, text: string): void {
    writeFileSync(join(this.folder, file), text)
  }

  /** Waits until the handlers have been events this, and forgets it. */
  async until(...expected: readonly string[]): Promise<void> {
    const deadline = performance.now() + 4000 * patience()
    while (this.events.length < expected.length && performance.now() < deadline) await sleep(10)
    expect(this.events.splice(0).sort()).toEqual([...expected].sort())
  }

  async readLog(pattern: RegExp): Promise<void> {
    const deadline = performance.now() + 4000 * patience()
    while (!this.log.some((line) => pattern.test(line)) && performance.now() < deadline) await sleep(10)
    expect(this.log).toEqual(expect.arrayContaining([expect.stringMatching(pattern)]))
    this.log.length = 0
  }

  failure(): Promise<void> {
    return this.#running
  }

  async stop(): Promise<void> {
    this.#abort.abort()
    await this.#running.catch(() => {})
    rmSync(this.folder, { recursive: true, force: true })
  }
}

const synced = ['node set box', 'services synced', 'slices synced', 'node synced', 'serviceCidrs synced']

describe('watchManifests()', () => {
  let watching: Watching
  beforeEach(() => {
    watching = new Watching()
  })
  afterEach(() => watching.stop())

  test('delivers what is there at first and says that this is all', async () => {
    watching.write('web.yaml', service('web', '10.0.0.1'))
    watching.write('node.json', '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "box"}}')
    watching.write('other-node.json', '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "other"}}')
    watching.write('.hidden.yaml', service('hidden', '10.0.0.2'))
    watching.write('notes.txt', 'not: for us')
    watching.start()
    await watching.until('services set default/web', 'node set box', ...synced)
  })

  test('an empty folder is a cluster without services', async () => {
    watching.start()
    await watching.until(...synced)
  })

  test('a folder that is not there ends it', async () => {
    watching.start('/nowhere/at/all')
    await expect(watching.failure()).rejects.toThrow('Cannot read manifests in /nowhere/at/all: ENOENT')
  })

  test('follows edits, additions, deletions and renames over a file', async () => {
    watching.write('web.yaml', service('web', '10.0.0.1'))
    watching.start()
    await watching.until('services set default/web', ...synced)

    watching.write('web.yaml', service('web', '10.0.0.2'))
    await watching.until('services set default/web')

    watching.write('api.yml', service('api', '10.0.0.3'))
    await watching.until('services set default/api')

    watching.write('.web.yaml.tmp', service('web2', '10.0.0.4'))
    renameSync(join(watching.folder, '.web.yaml.tmp'), join(watching.folder, 'web.yaml'))
    await watching.until('services set default/web2', 'services delete default/web')

    rmSync(join(watching.folder, 'api.yml'))
    await watching.until('services delete default/api')
  })

  test('an edit that changes nothing is no change', async () => {
    watching.write('web.yaml', service('web', '10.0.0.1'))
    watching.start()
    await watching.until('services set default/web', ...synced)
    watching.write('web.yaml', `# A word about it.\n${service('web', '10.0.0.1')}`)
    await watching.readLog(/Manifests changed/)
    await watching.until()
  })

  test('a file that has become bad is reported with file, line and reason, and what it said stays', async () => {
    watching.write('web.yaml', service('web', '10.0.0.1'))
    watching.write('api.yaml', service('api', '10.0.0.2'))
    watching.start()
    await watching.until('services set default/web', 'services set default/api', ...synced)
    watching.write('web.yaml', service('web', '10.0.0.300'))
    await watching.readLog(/^error DIR\/web.yaml:4: spec.clusterIP: must be an IP address or None, not "10.0.0.300"$/)
    await watching.until()
    watching.write('web.yaml', service('web', '10.0.0.3'))
    await watching.until('services set default/web')
  })

  test('a bad file at first does not keep the others away', async () => {
    watching.write('web.yaml', 'kind: [')
    watching.write('api.yaml', service('api', '10.0.0.2'))
    watching.start()
    await watching.until('services set default/api', ...synced)
    await watching.readLog(/^error DIR\/web.yaml:\d: /)
  })

  test('of two objects of one name the first file counts, until it is gone', async () => {
    watching.write('a.yaml', service('web', '10.0.0.1'))
    watching.write('b.yaml', service('web', '10.0.0.2'))
    watching.start()
    await watching.until('services set default/web', ...synced)
    await watching.readLog(/^warning DIR\/b.yaml:1: Service default\/web is already in DIR\/a.yaml, line 1, passing/)
    rmSync(join(watching.folder, 'a.yaml'))
    await watching.until('services set default/web')
  })

  test('follows the swap of a link by which the kubelet updates a volume', async () => {
    const { folder } = watching
    for (const version of ['1', '2']) {
      mkdirSync(join(folder, `..${version}`))
      writeFileSync(join(folder, `..${version}`, 'web.yaml'), service('web', `10.0.0.${version}`))
    }
    symlinkSync('..1', join(folder, '..data'))
    symlinkSync('..data/web.yaml', join(folder, 'web.yaml'))
    watching.start()
    await watching.until('services set default/web', ...synced)
    symlinkSync('..2', join(folder, '..data_tmp'))
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
    await watching.until('services set default/web')
  })

  test('takes a single file', async () => {
    watching.write('web.yaml', service('web', '10.0.0.1'))
    watching.write('other.yaml', service('other', '10.0.0.2'))
    watching.start(join(watching.folder, 'web.yaml'))
    await watching.until('services set default/web', ...synced)
    watching.write('web.yaml', service('web', '10.0.0.3'))
    await watching.until('services set default/web')
  })

  test('Endpoints become slices, unless the service has slices of its own', async () => {
    const endpoints = (name: string) =>
      `apiVersion: v1\nkind: Endpoints\nmetadata: {name: ${name}}\nsubsets: [{addresses: [{ip: 10.1.0.1}], ports: [{port: 80}]}]\n`
    const slice =
      'apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: b-1, labels: {kubernetes.io/service-name: b}}\naddressType: IPv4\nendpoints: []\nports: []\n'
    watching.write('all.yaml', [endpoints('a'), endpoints('b'), slice].join('---\n'))
    watching.start()
    await watching.until('slices set default/a-ipv4-0', 'slices set default/b-1', ...synced)
    rmSync(join(watching.folder, 'all.yaml'))
    await watching.until('slices delete default/a-ipv4-0', 'slices delete default/b-1')
  })
})
