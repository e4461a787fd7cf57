// `explain`, `doctor`, `top` and `flows`, typed on a machine that runs no proxy but a sandbox: they are asked on a node of it.

import { existsSync, readFileSync } from 'node:fs'
import { placeOfClient, withAddress } from '../../../../src/diagnose/choose-node.ts'
import { askPath, SOCKET_VARIABLE } from '../../../../src/serve/control/path.ts'
import { askStatus, type SandboxStatus } from '../instance/control.ts'
import type { InstanceFolder } from '../instance/instance-folder.ts'
import { runSandboxExec } from './sandbox-exec.ts'
import { findInstance, runningInstances } from './sandbox-instances.ts'

export type AskingCommand = 'explain' | 'doctor' | 'top' | 'flows'

/** Whoever gives one of these has said where to look. */
const PLACES = /^--?(control-socket|kubeconfig|master|manifests|dump|config|node|sandbox|help|h)(=|$)/

/** Runs it there and answers its exit status; undefined: there is a proxy here, or no sandbox, or a place was named. */
export async function runInSandbox(command: AskingCommand, argv: readonly string[]): Promise<number | undefined> {
  if (process.env[SOCKET_VARIABLE] || existsSync(askPath(''))) return undefined
  const running = runningInstances()
  if (running.length === 0) return undefined
  const asked = command === 'doctor' ? withoutKubeconfig(argv, running) : { argv, folder: undefined }
  if (asked.argv.some((each) => PLACES.test(each))) return undefined
  const folder = asked.folder ?? findInstance(undefined)
  const status = await askStatus(folder.controlSocket)
  const { node, args } = askedFrom(command, asked.argv, status)
  if (node === undefined) return undefined
  process.stderr.write(`kube-proxy: asking ${node} of sandbox ${folder.name}\n`)
  const self = [process.execPath, ...process.execArgv, process.argv[1]!, command, ...args]
  const more = command === 'doctor' ? apiOf(folder) : []
  const inside = { name: folder.name, place: node, command: [...self, ...more] }
  const exit = await runSandboxExec(inside, ['--name', folder.name, 'exec', node, '--', ...inside.command])
  if (command === 'doctor' && exit === FOUND)
    process.stderr.write(`kube-proxy: to type on ${node}: kube-proxy sandbox exec ${node} -- COMMAND\n`)
  return exit
}

/** Its next command may be one of that node: nft, ip, sysctl. */
const FOUND = 2

/** That of a sandbox says which one is meant; it is given on the node, as the node needs it. */
export function withoutKubeconfig<T extends { readonly kubeconfig: string }>(
  argv: readonly string[],
  running: readonly T[],
): { readonly argv: readonly string[]; readonly folder: T | undefined } {
  const at = argv.findIndex((each) => /^--kubeconfig(=|$)/.test(each))
  const [flag = '', value = argv[at + 1]] = argv[at]?.split('=') ?? []
  const folder = at < 0 ? undefined : running.find(({ kubeconfig }) => kubeconfig === value)
  return folder === undefined ? { argv, folder } : { argv: argv.toSpliced(at, flag === argv[at] ? 2 : 1), folder }
}

/** The node of the pod that asks, else the first; a pod is named by its address there, because proxies do not know pods. */
export function askedFrom(
  command: AskingCommand,
  argv: readonly string[],
  { nodes, pods }: Pick<SandboxStatus, 'nodes' | 'pods'>,
): { readonly node: string | undefined; readonly args: readonly string[] } {
  const [first] = nodes
  const at = command === 'top' || command === 'flows' ? undefined : placeOfClient(command, argv)
  const from = at === undefined ? undefined : argv[at]?.replace(/^--from=/, '')
  const [namespace, name] = from?.includes('/') === true ? from.split('/') : ['default', from]
  const pod = pods.find((each) => each.name === name && each.namespace === namespace)
  const address = pod?.addresses[0]
  if (at === undefined || pod === undefined || address === undefined) {
    const node = nodes.find((each) => from !== undefined && each.addresses.includes(from)) ?? first
    return { node: node?.name, args: argv }
  }
  return { node: pod.node, args: withAddress(argv, at, address) }
}

/** The API server by the address that it has for nodes: the user's kubeconfig has the machine's. */
function apiOf(folder: InstanceFolder): string[] {
  const [, server] =
    /server: *"?(https:\/\/[^\s"]+)/.exec(readFileSync(folder.path('kube-proxy.kubeconfig'), 'utf8')) ?? []
  return server === undefined ? [] : ['--kubeconfig', folder.kubeconfig, '--master', server]
}
