// The shell commands that do what the page's buttons do. Pure: the page shows a command before the click, the server after it.

import { BALANCE_ANNOTATION } from '../model/balance.ts'
import type { Action, DoctorRequest, ExplainQuestion, LoadRequest, Snapshot, Terminal } from './protocol.ts'

export type CommandContext = Pick<Snapshot, 'terminal' | 'nodes' | 'services'>

/** One or several lines. */
export function commandFor(action: Action, context: CommandContext): string {
  const { terminal } = context
  const exec = (place: string) => `${sandbox(terminal)} exec ${place} --`
  switch (action.action) {
    case 'scale':
      return `${kubectl(action.namespace)} scale deployment ${quote(action.deployment)} --replicas=${action.replicas}`
    case 'fail': {
      const value = action.how === 'none' ? 'sandbox/fail-' : `sandbox/fail=${action.how} --overwrite`
      return `${kubectl(action.namespace)} annotate pod ${quote(action.pod)} ${value}`
    }
    case 'delete-pod':
      return `${kubectl(action.namespace)} delete pod ${quote(action.pod)}`
    case 'policy':
      return patch(action, { [action.field]: action.value })
    case 'affinity':
      return patch(action, { sessionAffinity: action.value })
    case 'connect-retry': {
      const value = action.value === 'on' ? '=on --overwrite' : '-'
      return `${kubectl(action.namespace)} annotate service ${quote(action.service)} service.kube-proxy-ts.io/connect-retry${value}`
    }
    case 'balance': {
      const value = action.value === 'random' ? '-' : `=${action.value} --overwrite`
      return `${kubectl(action.namespace)} annotate service ${quote(action.service)} ${BALANCE_ANNOTATION}${value}`
    }
    case 'find-address':
      return context.nodes.map(({ name }) => `${exec(name)} ip address show to ${quote(action.address)}`).join('\n')
    case 'flush':
      return flushCommands(modeOf(action.node, context))
        .map((line) => `${exec(action.node)} ${line}`)
        .join('\n')
    case 'kill-proxy': {
      const pid = context.nodes.find(({ name }) => name === action.node)?.proxy.pid
      return `${isSudo(terminal) ? 'sudo ' : ''}kill -KILL ${pid ?? 'PID'}`
    }
    case 'mode':
      return `${sandbox(terminal)} mode ${action.node} ${action.mode}`
    case 'api-server-away':
      return `${sandbox(terminal)} api-server away`
    case 'api-server-back':
      return `${sandbox(terminal)} api-server back`
    case 'load': {
      const from = action.from === 'outside' ? 'machine' : action.from
      const pause = Math.round(1000 / action.perSecond) / 1000
      return `${exec(from)} sh -c 'while sleep ${pause}; do curl -s http://${hostOf(action.to, context, action.via)}; done'`
    }
    case 'load-end':
      return 'Ctrl-C'
    case 'plant':
      return '# the solution shows it'
  }
}

export function explainCommand(question: ExplainQuestion, { terminal }: Pick<CommandContext, 'terminal'>): string {
  const { from, to, via, family, send, node } = question
  const words = [
    'explain',
    ...(via === undefined ? [] : [`--via=${via}`]),
    ...(family === undefined ? [] : [`--family=${family}`]),
    ...(send === true ? ['--send'] : []),
    quote(from),
    quote(to),
  ].join(' ')
  return onNode(words, node, terminal)
}

export function doctorCommand(
  { service, from, node }: DoctorRequest,
  { terminal }: Pick<CommandContext, 'terminal'>,
): string {
  const words = [
    'doctor',
    ...(from === undefined ? [] : [`--from=${quote(from)}`]),
    ...(service === undefined ? [] : [quote(service)]),
  ]
  return onNode(words.join(' '), node, terminal)
}

/** A command of this program, which asks the proxy of a node. */
function onNode(words: string, node: string | undefined, terminal: Terminal): string {
  const isSandbox = terminal.kubeconfig !== null && node !== undefined
  return isSandbox ? `${sandbox(terminal)} exec ${node} -- ${bare(terminal)} ${words}` : `${terminal.program} ${words}`
}

/** Sends a packet from a pod or from the machine outside. */
export function dialCommand(place: string, host: string, { terminal }: Pick<CommandContext, 'terminal'>): string {
  return `${sandbox(terminal)} exec ${quote(place)} -- curl --silent --max-time 2 http://${host}`
}

/** Removes the rules of a mode, as a careless program would. */
export function flushCommands(mode: string): string[] {
  if (mode === 'ipvs') return ['ipvsadm --clear', 'nft flush ruleset']
  if (mode === 'iptables') return ['iptables -t nat -F', 'iptables -t filter -F']
  return ['nft flush ruleset']
}

function modeOf(node: string, { nodes }: CommandContext): string {
  return nodes.find(({ name }) => name === node)?.mode ?? ''
}

function patch(
  { namespace, service }: { readonly namespace: string; readonly service: string },
  spec: Readonly<Record<string, string>>,
): string {
  return `${kubectl(namespace)} patch service ${quote(service)} -p '${JSON.stringify({ spec })}'`
}

function kubectl(namespace: string): string {
  return namespace === 'default' ? 'kubectl' : `kubectl -n ${quote(namespace)}`
}

function sandbox({ program, sandbox: name }: Terminal): string {
  return `${program} sandbox${name === null ? '' : ` --name ${quote(name)}`}`
}

/** Without sudo: `sandbox exec` runs as root. */
function bare({ program }: Terminal): string {
  return program.replace(/^sudo /, '')
}

function isSudo({ program }: Terminal): boolean {
  return program.startsWith('sudo ')
}

/** The cluster IP and port of a service; else the text itself. */
function hostOf(to: string, { services }: CommandContext, via?: LoadRequest['via']): string {
  const [name = '', port] = to.split(':')
  const service = services.find((each) => `${each.namespace}/${each.name}` === name)
  const found = service?.ports.find((each) => port === undefined || String(each.port) === port || each.name === port)
  const [ip] = (via === 'loadBalancerIP' ? service?.loadBalancerIPs : service?.clusterIPs) ?? []
  if (ip === undefined || found === undefined) return to
  return `${ip.includes(':') ? `[${ip}]` : ip}:${found.port}`
}

/** Quotes a word for a shell, if needed. */
function quote(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
