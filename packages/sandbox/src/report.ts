// What a sandbox says about itself when it is ready: what was made, and what to type next.

import { count } from '../../../src/lib/count.ts'
import { joinHostPort } from '../../../src/lib/ip.ts'
import type { ExampleService } from './example.ts'

export interface Report {
  readonly tookMs: number
  readonly mode: string
  readonly nodes: readonly {
    readonly name: string
    readonly addresses: readonly string[]
    readonly podRanges: readonly string[]
  }[]
  readonly pods: readonly { readonly name: string; readonly node: string }[]
  /** Those worth a line; not the API server's own. */
  readonly services: readonly ExampleService[]
  readonly kubeconfig: string
  readonly pageUrl: string
  /** How the program is called here: `sudo ./bin/kube-proxy`. */
  readonly command: string
  /** Whether this machine itself has routes into the sandbox, or only a namespace that stands for it. */
  readonly machine: 'connected' | 'apart'
  readonly life: 'foreground' | 'detached'
  /** The name, where it has to be given because it is not the usual one. */
  readonly name: string | undefined
  /** Tools that the next commands need and that are not there, with the packages that have them. */
  readonly missingTools: readonly string[]
}

export function formatReport(report: Report): string {
  const { nodes, pods, services, tookMs, mode } = report
  const seconds = (tookMs / 1000).toFixed(1)
  const sections = [
    [
      `A cluster of ${count(nodes.length, 'node')} in mode ${mode}, with ${count(pods.length, 'pod')} and ${count(services.length, 'service')}, ready in ${seconds} s.`,
    ],
    formatColumns([...nodes.map(nodeRow), ...services.map(serviceRow)]),
    ['See it in a browser:', ...indent([report.pageUrl])],
    ['Look at it:', ...indent([`export KUBECONFIG=${report.kubeconfig}`, 'kubectl get pods,services -o wide'])],
    ...services.slice(0, 1).map((service) => formatQuestions(report, service)),
    ...services.slice(0, 1).map((service) => formatTools(report, service)),
    report.missingTools,
    [farewell(report)],
  ]
  return sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.map((line) => `${line}\n`).join(''))
    .join('\n')
}

function nodeRow({ name, addresses, podRanges }: Report['nodes'][number]): string[] {
  return ['node', name, addresses.join(', '), `pods ${podRanges.join(', ')}`]
}

function serviceRow({ name, clusterIPs, loadBalancerIPs, port, nodePort }: ExampleService): string[] {
  const places = [
    clusterIPs.map((ip) => joinHostPort(ip, port)).join(', '),
    ...(nodePort === undefined ? [] : [`node port ${nodePort}`]),
    ...(loadBalancerIPs.length === 0
      ? []
      : [`load balancer ${loadBalancerIPs.map((ip) => joinHostPort(ip, port)).join(', ')}`]),
  ]
  return ['service', name, ...places]
}

/** Commands that call the service from everywhere, each with a comment on what it shows. */
function formatQuestions(report: Report, asked: ExampleService): string[] {
  const { name, clusterIPs, loadBalancerIPs, port, nodePort } = asked
  const [ip] = clusterIPs
  const [balancer] = loadBalancerIPs
  const [node] = report.nodes
  const pod = report.pods[0]
  const last = report.nodes.at(-1)
  if (ip === undefined || node === undefined) return []
  const service = `http://${joinHostPort(ip, port)}`
  const exec = `${report.command} sandbox ${report.name === undefined ? '' : `--name ${report.name} `}exec`
  const here = report.machine === 'connected' ? '' : `${exec} machine -- `
  const from = report.machine === 'connected' ? 'from this machine' : 'from outside the nodes'
  const rows = [
    [`${here}curl ${service}`, `${from}; again and again`],
    ...(nodePort === undefined
      ? []
      : [[`${here}curl http://${joinHostPort(node.addresses[0]!, nodePort)}`, 'through the node port']]),
    ...(balancer === undefined
      ? []
      : [[`${here}curl http://${joinHostPort(balancer, port)}`, 'through the load balancer']]),
    ...(last === undefined ? [] : [[`${exec} ${last.name} -- curl -s ${service}`, 'from a node']]),
    ...(pod === undefined
      ? []
      : [
          [
            `kubectl exec ${pod.name} -- curl -s http://${name}:${port}/client`,
            'from a pod, by name: whom does the server see?',
          ],
        ]),
    ['kubectl scale deployment whoami --replicas=30', 'and ask again'],
  ]
  return ['Ask the service:', ...indent(formatColumns(rows.map(([command, comment]) => [command!, `# ${comment}`])))]
}

/** They find the sandbox by themselves, wherever they are typed, unless there are several. */
function formatTools({ command, name }: Report, { name: service }: ExampleService): string[] {
  if (name !== undefined) return []
  const rows = [
    [`${command} explain ${service}`, 'which rule takes a packet, and why'],
    [`${command} doctor ${service}`, 'what is wrong, if something is'],
    [`${command} top`, 'what goes through, live'],
    [`${command} flows ${service}`, 'who connects to it, live'],
  ]
  return ['Ask the proxy:', ...indent(formatColumns(rows.map(([typed, comment]) => [typed!, `# ${comment}`])))]
}

function farewell({ life, command, name }: Report): string {
  if (life === 'foreground') return 'Ctrl-C takes everything down.'
  return `To take everything down: ${command} sandbox down${name === undefined ? '' : ` --name ${name}`}`
}

export function formatColumns(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = []
  for (const row of rows) for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length)
  return rows.map((row) =>
    row
      .map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths[i]!)))
      .join('   ')
      .trimEnd(),
  )
}

function indent(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`)
}
