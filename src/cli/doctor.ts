// `kube-proxy doctor`: the command line, as a function.

import { ControlClient, NoProxyError } from '../serve/control/client.ts'
import type { StateAnswer } from '../serve/control/state.ts'
import { couldNotLook, examine } from '../diagnose/doctor/examine.ts'
import { examineNode } from '../diagnose/doctor/examine-node.ts'
import {
  formatDiagnosis,
  formatDiagnosisJson,
  formatNodeDiagnosis,
  formatNodeDiagnosisJson,
} from '../diagnose/doctor/format.ts'
import type { NodeFacts, ProxyFact } from '../diagnose/doctor/facts.ts'
import { findInstallation } from '../diagnose/doctor/installation.ts'
import { readFacts } from '../diagnose/doctor/read-facts.ts'
import { knownFromState } from '../diagnose/explain/from-state.ts'
import type { Known } from '../diagnose/explain/known.ts'
import { paintFor } from '../diagnose/explain/paint.ts'
import { FRONTEND_KINDS, isFrontendKind, type Question } from '../diagnose/explain/question.ts'
import { readApiObjects, type ReadObjects } from '../diagnose/explain/read-known.ts'
import { parseTarget } from '../diagnose/explain/target.ts'
import { messageOf } from '../lib/errors.ts'
import { modeNamed } from '../modes/all.ts'
import { formatDoctorHelp } from './doctor-help.ts'
import { type OwnFlag, splitArguments } from './explain-arguments.ts'
import { parseFlags } from './parse-flags.ts'

const OWN_FLAGS: readonly OwnFlag[] = [
  { name: 'output', short: 'o', takesValue: true },
  { name: 'help', short: 'h', takesValue: false },
  { name: 'from', takesValue: true },
  { name: 'via', takesValue: true },
]

/** `open`: nothing was found, but not everything could be looked at. */
export const doctorStatus = { clean: 0, failure: 1, found: 2, open: 3 } as const

/** A proxy that has not answered by then is busy with something else, or hangs. */
const PATIENCE_MS = 5000

/** Examines and answers the exit status. */
export async function runDoctorCommand(argv: readonly string[]): Promise<number> {
  const { own, positional, flags, errors } = splitArguments(argv, OWN_FLAGS)
  if (own.has('help')) {
    process.stdout.write(formatDoctorHelp())
    return 0
  }
  const { given, errors: flagErrors } = parseFlags(flags)
  const output = own.get('output') ?? 'text'
  const isNode = positional.length === 0
  const via = own.get('via')
  const target =
    positional.length <= 1 ? parseTarget(positional[0] ?? 'all') : 'doctor takes one NAMESPACE/SERVICE, or none'
  const wrong = [
    ...errors,
    ...flagErrors,
    ...(output === 'text' || output === 'json' ? [] : [`--output must be text or json, not ${JSON.stringify(output)}`]),
    ...(via === undefined || isFrontendKind(via)
      ? []
      : [`--via must be one of ${FRONTEND_KINDS.join(', ')}, not ${JSON.stringify(via)}`]),
    ...(typeof target === 'string'
      ? [target]
      : target.service === undefined
        ? ['doctor takes a Service, not an address']
        : []),
  ]
  if (wrong.length > 0 || typeof target === 'string' || target.service === undefined) {
    process.stderr.write(`${wrong.map((each) => `kube-proxy: ${each}\n`).join('')}See kube-proxy doctor --help\n`)
    return doctorStatus.failure
  }
  const text = (name: string) => (given.get(name) as string | undefined) ?? ''
  try {
    const { proxy, known, drift } = await askProxy(text('control-socket'))
    const objects = await askApi(text('kubeconfig'), text('master'))
    const paint = paintFor(process.stdout, process.env)
    const installation = findInstallation(proxy.kind === 'answers' ? proxy.node : undefined)
    if (isNode) {
      const node = await examineNode({ proxy, installation, known, objects, drift })
      process.stdout.write(output === 'json' ? formatNodeDiagnosisJson(node) : formatNodeDiagnosis(node, paint))
      return statusOf(node.finding !== null || node.services.length > 0, node)
    }
    const facts = await readFacts({
      service: `${target.service.namespace}/${target.service.name}`,
      port: target.port === undefined ? '' : String(target.port),
      from: own.get('from') ?? 'node',
      via: via as Question['via'],
      proxy,
      installation,
      known,
      objects,
    })
    const diagnosis = examine(facts)
    process.stdout.write(output === 'json' ? formatDiagnosisJson(diagnosis) : formatDiagnosis(diagnosis, paint))
    return statusOf(diagnosis.finding !== null, diagnosis)
  } catch (error) {
    process.stderr.write(`kube-proxy: ${messageOf(error)}\n`)
    return doctorStatus.failure
  }
}

function statusOf(isFound: boolean, asked: Parameters<typeof couldNotLook>[0]): number {
  if (isFound) return doctorStatus.found
  return couldNotLook(asked) ? doctorStatus.open : doctorStatus.clean
}

async function askProxy(
  socket: string,
): Promise<{ proxy: ProxyFact; known: Known | undefined; drift: NodeFacts['drift'] }> {
  const client = new ControlClient(socket)
  try {
    const state = await client.ask<StateAnswer>('state', { timeoutMs: PATIENCE_MS, query: { only: 'objects' } })
    const proxy = { kind: 'answers', mode: state.mode.name, node: state.nodeName } as const
    const drift = state.families.map(({ family, drift: ofFamily }) => ({ family, ...ofFamily }))
    return { proxy, known: knownFromState(state, modeNamed), drift }
  } catch (error) {
    if (!(error instanceof NoProxyError)) throw error
    const { code } = (error.cause ?? {}) as NodeJS.ErrnoException
    // Without permission, the question is not the proxy's.
    if (code === 'EACCES' || code === 'EPERM') throw error
    const kind = code === 'ENOENT' || code === 'ECONNREFUSED' ? 'none' : 'silent'
    return { proxy: { kind, error: error.message }, known: undefined, drift: [] }
  } finally {
    client.close()
  }
}

async function askApi(
  kubeconfig: string,
  master: string,
): Promise<(ReadObjects & { readonly server: string }) | undefined> {
  return kubeconfig === '' && master === '' ? undefined : readApiObjects({ kubeconfig, master })
}
