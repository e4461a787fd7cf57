import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Iptables } from './driver.ts'
import { KeptText } from './kept-text.ts'
import type { Backend } from './script.ts'

const version = { major: 1, minor: 8, patch: 9 }

/** What two families do at once, where iptables-restore only notes when it begins and ends. */
async function restoreBoth(backend: Backend): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'iptables-driver-'))
  try {
    const [log, name] = [join(folder, 'log'), join(folder, 'iptables-test')]
    writeFileSync(log, '')
    writeFileSync(
      `${name}-restore`,
      `#!/bin/sh\necho begins >> ${log}\ncat > /dev/null\nsleep 0.3\necho ends >> ${log}\n`,
    )
    chmodSync(`${name}-restore`, 0o755)
    const drivers = ([4, 6] as const).map(
      (family) => new Iptables({ programs: { backend, version, name }, family, onContention: () => {} }),
    )
    await Promise.all(drivers.map((driver) => driver.restore(new KeptText(['*nat\nCOMMIT\n']))))
    return readFileSync(log, 'utf8').trim().split('\n')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('two families do not wait for each other at the lock of iptables-legacy: one begins when the other has ended', async () => {
  expect(await restoreBoth('legacy')).toEqual(['begins', 'ends', 'begins', 'ends'])
})
