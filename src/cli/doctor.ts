// `kube-proxy doctor`.

import { existsSync } from 'node:fs'
import { couldNotLook, examine } from '../diagnose/doctor/examine.ts'
import { examineNode } from '../diagnose/doctor/examine-node.ts'
import { formatDiagnosis, formatNodeDiagnosis } from '../diagnose/doctor/format.ts'
import { formatJson } from '../diagnose/format-json.ts'
import { findInstallation } from '../diagnose/doctor/installation.ts'
import { readFacts } from '../diagnose/doctor/read-facts.ts'
import { readProxy } from '../diagnose/doctor/read-proxy.ts'
import { paintFor } from '../diagnose/paint.ts'
import { readApi } from '../diagnose/doctor/read-api.ts'
import { parseTarget } from '../diagnose/explain/target.ts'
import { UsageError } from '../lib/command.ts'
import { textOf } from './parse-flags.ts'
import type { Question } from '../diagnose/explain/question.ts'

export interface DoctorOptions {
  readonly from: string
  readonly via: Question['via']
  readonly send: boolean
  readonly output: 'text' | 'json'
}

/** `open`: nothing was found, but not everything could be looked at. */
const exitStatus = { clean: 0, found: 2, open: 3 } as const

/** `service` is NAMESPACE/SERVICE[:PORT]; undefined: the whole node is examined. */
export async function runDoctorCommand(
  service: string | undefined,
  { from, via, send, output }: DoctorOptions,
  given: ReadonlyMap<string, unknown>,
): Promise<number> {
  const target = service === undefined ? undefined : serviceOf(service)
  const { proxy, known, drift } = await readProxy(textOf(given, 'control-socket'))
  const { objects, error: apiError } = await readApi(fileOf(textOf(given, 'kubeconfig')), textOf(given, 'master'))
  const paint = paintFor(process.stdout, process.env)
  const installation = findInstallation(proxy.kind === 'answers' ? proxy.node : undefined)
  const common = { proxy, installation, known, objects, apiError, socket: textOf(given, 'control-socket') }
  if (target === undefined) {
    const node = await examineNode({ ...common, drift })
    process.stdout.write(output === 'json' ? formatJson({ version: 1, ...node }) : formatNodeDiagnosis(node, paint))
    return statusOf(node.finding !== null || node.services.length > 0, node)
  }
  const diagnosis = examine(await readFacts({ ...common, ...target, from, via, sends: send }))
  process.stdout.write(output === 'json' ? formatJson({ version: 1, ...diagnosis }) : formatDiagnosis(diagnosis, paint))
  return statusOf(diagnosis.finding !== null, diagnosis)
}

/** A file that is not there is a mistake of the user; an API server that does not answer is not. */
function fileOf(kubeconfig: string): string {
  if (kubeconfig !== '' && !existsSync(kubeconfig)) throw new UsageError(`--kubeconfig: there is no file ${kubeconfig}`)
  return kubeconfig
}

function serviceOf(text: string): { readonly service: string; readonly port: string } {
  const target = parseTarget(text)
  if (typeof target === 'string') throw new UsageError(target)
  if (target.service === undefined) throw new UsageError('doctor takes a Service, not an address')
  const { namespace, name } = target.service
  return { service: `${namespace}/${name}`, port: String(target.port ?? '') }
}

function statusOf(isFound: boolean, asked: Parameters<typeof couldNotLook>[0]): number {
  if (isFound) return exitStatus.found
  return couldNotLook(asked) ? exitStatus.open : exitStatus.clean
}
