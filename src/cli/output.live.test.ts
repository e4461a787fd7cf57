// What a command writes to a pipe that is full comes out whole.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const program = join(import.meta.dirname, '../../bin/kube-proxy')
/** What a pipe holds. */
const PIPE = 65_536

test('a reader that is slow gets all of it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'output-'))
  try {
    const services = Array.from({ length: 1500 }, (_, i) => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: `service-${i}`, namespace: 'default' },
      spec: { clusterIP: `10.96.${i >> 8}.${i & 255}`, ports: [{ port: 80 }] },
    }))
    const file = join(folder, 'services.yaml')
    writeFileSync(file, services.map((each) => `---\n${JSON.stringify(each)}\n`).join(''))
    const render = `${program} render --mode=nftables --node=n --manifests=${file}`
    execFileSync('sh', ['-c', `${render} > ${folder}/whole; ${render} | { sleep 1; cat; } > ${folder}/piped`], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const size = (name: string) => Number(execFileSync('stat', ['-c', '%s', join(folder, name)], { encoding: 'utf8' }))
    expect(size('whole')).toBeGreaterThan(PIPE)
    expect(size('piped')).toBe(size('whole'))
  } finally {
    rmSync(folder, { recursive: true })
  }
})
