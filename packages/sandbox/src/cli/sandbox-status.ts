import { messageOf } from '../../../../src/lib/errors.ts'
import { askStatus, type SandboxStatus } from '../instance/control.ts'
import { formatColumns } from '../report.ts'
import { findInstance, runningInstances } from './sandbox-instances.ts'

/** Prints what runs in a sandbox, or in all of them. */
export async function runSandboxStatus(command: {
  readonly name: string | undefined
  readonly output: 'text' | 'json'
}): Promise<number> {
  const folders = command.name === undefined ? runningInstances() : [findInstance(command.name)]
  const statuses: SandboxStatus[] = []
  const failures: Error[] = []
  for (const folder of folders) {
    try {
      statuses.push(await askStatus(folder.controlSocket))
    } catch (error) {
      failures.push(new Error(`Cannot ask sandbox ${folder.name}: ${messageOf(error)}`, { cause: error }))
    }
  }
  // One of another user cannot be asked, and one that ends just now: the others can.
  if (statuses.length === 0 && failures[0] !== undefined) throw failures[0]
  for (const { message } of failures) process.stderr.write(`kube-proxy: ${message}\n`)
  if (command.output === 'json') process.stdout.write(`${JSON.stringify(statuses, null, 2)}\n`)
  else process.stdout.write(statuses.length === 0 ? 'No sandbox is running.\n' : statuses.map(formatStatus).join('\n'))
  return 0
}

function formatStatus({ name, pid, upSeconds, apiServer, kubeconfig, nodes, pods }: SandboxStatus): string {
  const nodeRows = nodes.map((node) => [
    node.name,
    node.addresses.join(','),
    node.mode,
    node.health,
    String(node.proxyPid ?? '-'),
    String(node.restarts),
    node.podRanges.join(','),
  ])
  const podRows = pods.map((pod) => [pod.name, pod.namespace, pod.node, pod.addresses.join(',')])
  const lines = [
    `Sandbox ${name}: process ${pid}, up for ${upSeconds} s, API server ${apiServer}`,
    `KUBECONFIG=${kubeconfig}`,
    '',
    ...formatColumns([['NODE', 'ADDRESS', 'MODE', 'PROXY', 'PID', 'RESTARTS', 'PODS'], ...nodeRows]),
    '',
    ...(pods.length === 0 ? ['No pods.'] : formatColumns([['POD', 'NAMESPACE', 'NODE', 'ADDRESS'], ...podRows])),
  ]
  return lines.map((line) => `${line}\n`).join('')
}
