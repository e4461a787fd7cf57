// `kube-proxy test`.

import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { openApiClient } from '../kube/open-client.ts'
import { silentLogger } from '../lib/log.ts'
import { textOf } from './parse-flags.ts'
import { runTestCommand, type TestValues } from '../probe/test-command.ts'

export async function runTest(options: TestValues, given: ReadonlyMap<string, unknown>): Promise<number> {
  const master = textOf(given, 'master')
  const kubeconfig = chooseKubeconfig(textOf(given, 'kubeconfig'), master)
  const client = openApiClient({ kubeconfig, master, qps: -1, userAgent: 'kube-proxy-test' }, silentLogger)
  try {
    return await runTestCommand(options, { program: 'kube-proxy', client })
  } finally {
    client.close()
  }
}

/** As kubectl finds it; empty in a pod, which has its own access. */
function chooseKubeconfig(given: string, master: string): string {
  if (given !== '' || master !== '') return given
  const fromEnvironment = (process.env['KUBECONFIG'] ?? '').split(delimiter).find((file) => existsSync(file))
  if (fromEnvironment !== undefined) return fromEnvironment
  const own = join(homedir(), '.kube/config')
  return existsSync(own) ? own : ''
}
