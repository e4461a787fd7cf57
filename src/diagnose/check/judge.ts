// From facts to findings: pure.

import type { AvailableModes } from '../../config/modes.ts'
import type { ModeOutlook } from '../../modes/contract.ts'
import { planMode, type PlannedMode } from './choose-mode.ts'
import { differences } from './differences.ts'
import type {
  ConfigurationFacts,
  ConntrackFacts,
  CheckFacts,
  KernelFacts,
  CheckedNode,
  OtherFacts,
  SettingFact,
} from './facts.ts'
import { type Finding, finding } from './finding-kinds.ts'
import { judgeApi, judgeClock } from './judge-api.ts'
import { judgeExternalIPs, judgeIpvs } from './judge-coming.ts'

export interface Judgement {
  readonly mode: PlannedMode & { readonly asked: string }
  readonly findings: readonly Finding[]
}

const OLDEST_TRIED = [5, 13] as const
const NEARLY_FULL = 0.8

export function judge(facts: CheckFacts, modes: AvailableModes): Judgement {
  const { config, standIns } = facts.configuration
  const planned = planMode({ asked: config.mode, standIns, outlooks: facts.modes, modes })
  return {
    mode: { ...planned, asked: config.mode },
    findings: [
      ...judgeConfiguration(facts.configuration),
      ...judgeKernel(facts.kernel),
      ...judgeRights(facts.capabilities),
      ...judgeModes(facts, planned),
      ...judgeSockets(facts.sockets),
      ...judgeConntrack(facts.conntrack),
      ...judgeSettings(facts.settings),
      ...judgeOthers(facts.others, facts),
      ...judgeApi(facts.api),
      ...judgeClock(facts.api),
      ...judgeNode(facts.node),
    ],
  }
}

function judgeConfiguration(facts: ConfigurationFacts): Finding[] {
  const { file, warnings } = facts
  const what = file === undefined ? 'The flags can be used' : `${file} can be used`
  return [
    ...(warnings.length === 0
      ? [finding('config-ok', what)]
      : warnings.map((warning) => finding('config-odd', warning))),
    ...differences
      .filter(({ applies }) => applies(facts))
      .map(({ fields, text }) => finding('config-different', `${fields}: ${text}`)),
    ...judgeExternalIPs(facts.config),
  ]
}

function judgeKernel({ release, nftables, modules }: KernelFacts): Finding[] {
  const [major = 0, minor = 0] = release.split('.').map((part) => parseInt(part, 10))
  const isOld = major < OLDEST_TRIED[0] || (major === OLDEST_TRIED[0] && minor < OLDEST_TRIED[1])
  if (isOld) return [finding('kernel-old', `Linux ${release} is older than ${OLDEST_TRIED.join('.')}`)]
  const states = [['nf_tables', nftables], ...Object.entries(modules)].map(
    ([name, state]) => `${name} ${state === 'unknown' ? 'not loaded' : state}`,
  )
  return [finding('kernel-ok', `Linux ${release}: ${states.join(', ')}`)]
}

function judgeRights(capabilities: CheckFacts['capabilities']): Finding[] {
  const list = [...capabilities].join(', ')
  if (capabilities.has('CAP_NET_ADMIN')) return [finding('rights-ok', `This process has ${list}`)]
  return [finding('rights-missing', `This process does not have CAP_NET_ADMIN${list === '' ? '' : `, only ${list}`}`)]
}

function judgeModes({ modes: outlooks, configuration }: CheckFacts, { chosen, givenUp }: PlannedMode): Finding[] {
  const asked = configuration.config.mode
  const findings: Finding[] = []
  const why = (name: string) =>
    outlooks
      .get(name)
      ?.lacks.map(({ what }) => what)
      .join('; ')
  const todo = (name: string) =>
    outlooks
      .get(name)
      ?.lacks.map((lack) => lack.todo)
      .join('; ')
  if (chosen === undefined) {
    const reasons = givenUp.map((name) => `${name}: ${why(name)}`).join('; ')
    findings.push(finding('mode-impossible', `No mode can run here (${reasons})`, todo(asked)))
  } else if (chosen === asked) {
    findings.push(finding('mode-ok', `Mode ${asked} can run here${uses(outlooks.get(asked))}`))
  } else {
    const reasons = givenUp.map((name) => `${name} cannot run: ${why(name)}`).join('; ')
    findings.push(finding('mode-stands-in', `Mode ${chosen} would run in place of ${asked} (${reasons})`, todo(asked)))
  }
  for (const { what, todo: advice } of outlooks.get(chosen ?? asked)?.warnings ?? []) {
    findings.push(finding('mode-odd', `Mode ${chosen ?? asked}: ${what}`, advice))
  }
  if (configuration.mode === 'defaulted') {
    const message = `No mode is configured. The default is ${asked}, and nftables from Kubernetes 1.40 on`
    findings.push(finding('mode-default', message))
  }
  findings.push(...judgeIpvs(configuration.config))
  for (const [name, outlook] of outlooks) {
    if (name === chosen || givenUp.includes(name)) continue
    const lacks = outlook.lacks.length > 0
    const message = lacks ? `Mode ${name} cannot run here: ${why(name)}` : `Mode ${name} could run here${uses(outlook)}`
    findings.push(finding(lacks ? 'mode-not-possible' : 'mode-possible', message, lacks ? todo(name) : undefined))
  }
  return findings
}

function judgeSockets(sockets: CheckFacts['sockets']): Finding[] {
  if (sockets === undefined) return []
  if (sockets.kind === 'cannot choose')
    return [finding('sockets-cannot-choose', `Sockets cannot choose: ${sockets.why}`)]
  const what = 'for TCP, and for UDP without connect()'
  return [finding('sockets-choose', `Sockets in ${sockets.cgroup} can choose endpoints, ${what}`)]
}

function uses(outlook: ModeOutlook | undefined): string {
  return outlook === undefined || outlook.uses.length === 0 ? '' : ` (${outlook.uses.join('; ')})`
}

function judgeConntrack({ count, max, module }: ConntrackFacts): Finding[] {
  if (count === undefined || max === undefined) {
    if (module === 'missing')
      return [finding('conntrack-missing', 'The kernel cannot track connections: module nf_conntrack is missing')]
    return [finding('conntrack-not-loaded', 'The kernel does not track connections yet: it starts with the first rule')]
  }
  const isFull = max > 0 && count > NEARLY_FULL * max
  return [finding(isFull ? 'conntrack-full' : 'conntrack-ok', `${count} of ${max} connections are tracked`)]
}

function judgeSettings(settings: readonly SettingFact[]): Finding[] {
  const findings = settings.flatMap(({ path, wanted, rule, present, isWritable }) => {
    if (present === wanted || (rule === 'at least' && present !== undefined && present > wanted)) return []
    const name = path.startsWith('/proc/sys/') ? path.slice('/proc/sys/'.length).replaceAll('/', '.') : path
    if (present === undefined) return [finding('setting-stays', `${name} cannot be read; it should become ${wanted}`)]
    if (!isWritable)
      return [finding('setting-stays', `${name} is ${present}, should become ${wanted}, but is read-only here`)]
    return [finding('setting-changes', `${name} is ${present} and will be set to ${wanted}`)]
  })
  return findings.length > 0 ? findings : [finding('settings-ok', 'Kernel settings have the configured values')]
}

function judgeOthers({ processes, ports, rules, mark }: OtherFacts, { configuration }: CheckFacts): Finding[] {
  const hard = configuration.config.bindAddressHardFail
  // The ports of a proxy that is going to be stopped are not in the way.
  const taken = processes.length > 0 ? [] : ports.filter((port) => port.isTaken)
  const findings = [
    ...processes.map(({ pid, command }) => finding('other-process', `Another proxy runs: process ${pid}, ${command}`)),
    ...[...rules].flatMap(([name, present]) =>
      present.length === 0
        ? []
        : [finding('other-rules', `Rules of mode ${name} are in the kernel: ${present.join('; ')}`)],
    ),
    ...taken.map(({ name, address }) =>
      finding(hard ? 'port-taken-hard' : 'port-taken', `Another program listens on the port for ${name}, ${address}`),
    ),
    ...mark.setters.map((chain) =>
      finding('mark-taken', `Another program sets bit ${mark.bit} (${hex(mark.bit)}) of packet marks: ${chain}`),
    ),
  ]
  return findings.length > 0 ? findings : [finding('others-none', 'No other proxy runs')]
}

const hex = (bit: number) => `0x${(2 ** bit).toString(16)}`

function judgeNode({ name, object, addresses, machineAddresses, problems }: CheckedNode): Finding[] {
  const odd = [
    ...problems.errors.map((error) => finding('node-wrong', error)),
    ...problems.warnings.map((warning) => finding('node-odd', warning)),
  ]
  if (object === 'unknown') return [finding('node-unknown', `This machine's node name is ${name}`)]
  if (object === 'does not exist') return [finding('node-missing', `There is no Node ${name}`), ...odd]
  const here = new Set(machineAddresses)
  const list = addresses.map(({ type, address }) => `${type} ${address}`).join(', ')
  const isHere = addresses.some(({ address }) => here.has(address))
  if (addresses.length > 0 && !isHere) {
    return [
      finding('node-elsewhere', `Node ${name} exists, but this machine has none of its addresses: ${list}`),
      ...odd,
    ]
  }
  return [
    finding('node-ok', `Node ${name} exists, ${addresses.length === 0 ? 'without addresses' : `with ${list}`}`),
    ...odd,
  ]
}
