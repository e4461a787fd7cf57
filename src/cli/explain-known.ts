// Where explain reads: the running proxy, files, an API server, or a dump of rules.

import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { readMachineAddresses } from '../compose/machine-addresses.ts'
import type { RunOptions } from '../config/run-options.ts'
import { knownFromDump, parseDump } from '../diagnose/explain/dump.ts'
import type { KernelState } from '../diagnose/explain/explain.ts'
import type { Known } from '../diagnose/explain/known.ts'
import {
  knownFromObjects,
  PROXY_CONFIG_MAP,
  readKnownFromProxy,
  readObjects,
  readProxyConfigMap,
} from '../diagnose/explain/read-known.ts'
import type { KubeProxyConfiguration } from '../config/types.ts'
import { messageOf } from '../lib/errors.ts'
import { canonicalIp } from '../lib/ip.ts'
import { modeNamed, modes } from '../modes/all.ts'
import { loadQuietly, withNode } from './load-options.ts'
import { textOf } from './parse-flags.ts'

/** Whose connection is explained, and by which rules. */
export interface ExplainSource {
  readonly node: string | undefined
  readonly dump: string | undefined
  readonly 'node-addresses': string | undefined
  readonly kernel: boolean
}

export interface ReadKnown {
  readonly known: Known
  readonly kernel: KernelState | 'this machine' | undefined
  /** Of the proxy that was asked; empty: that of this network namespace. */
  readonly socket: string
}

type Given = ReadonlyMap<string, unknown>

export async function readKnown(options: ExplainSource, given: Given): Promise<ReadKnown> {
  const { dump: dumpFile } = options
  const dump =
    dumpFile === undefined ? undefined : parseDump(readFileSync(dumpFile === '-' ? 0 : dumpFile, 'utf8'), dumpFile)
  const nodeName = options.node ?? textOf(given, 'hostname-override')
  if (textOf(given, 'manifests') !== '' || textOf(given, 'kubeconfig') !== '' || textOf(given, 'master') !== '') {
    const explained = await loadQuietly(withNode(given, nodeName))
    const how = { nodeName, isHere: options.kernel, areFlagsGiven: saysHow(given) }
    const known = await readFromObjects(explained, how)
    return { known, kernel: dump?.state ?? (options.kernel ? 'this machine' : undefined), socket: '' }
  }
  if (dump !== undefined && textOf(given, 'control-socket') === '') {
    const known = knownFromDump(dump, addressesOf(options['node-addresses']), modeNamed)
    return { known, kernel: dump.state, socket: '' }
  }
  const socket = textOf(given, 'control-socket')
  return { known: await readKnownFromProxy(socket), kernel: dump?.state ?? 'this machine', socket }
}

interface HowToRead {
  readonly nodeName: string
  /** The node is this machine, whatever the two are called. */
  readonly isHere: boolean
  readonly areFlagsGiven: boolean
}

async function readFromObjects(options: RunOptions, { nodeName, isHere, areFlagsGiven }: HowToRead): Promise<Known> {
  const isThisMachine = isHere || nodeName === '' || nodeName.toLowerCase() === hostname().toLowerCase()
  const machineAddresses = isThisMachine ? readMachineAddresses() : undefined
  const [objects, { config, label }] = await Promise.all([
    readObjects(options, { pods: 'with pods', warn: () => {} }),
    areFlagsGiven || options.manifests !== ''
      ? { config: options.config, label: 'configured by the flags' }
      : readSettings(options),
  ])
  const source = options.manifests === '' ? `${objects.source}, ${label}` : objects.source
  return knownFromObjects({ source, config, objects, machineAddresses })
}

/** Flags that do not configure the proxy. */
const NOT_OF_PROXY = ['kubeconfig', 'master', 'hostname-override', 'control-socket', 'v']

function saysHow(given: Given): boolean {
  return [...given.keys()].some((name) => !NOT_OF_PROXY.includes(name))
}

/** As the ConfigMap of the cluster's proxies says, if it can be read. */
async function readSettings({
  config,
  master,
}: RunOptions): Promise<{ readonly config: KubeProxyConfiguration; readonly label: string }> {
  const read = await readProxyConfigMap({ ...config.clientConnection, master })
  if ('why' in read) return { config, label: `with the default configuration, because ${read.why}` }
  const { loadConfiguration } = await import('../config/load.ts')
  try {
    const { loaded } = loadConfiguration(read.text, { modes })
    const { hostnameOverride } = config
    return { config: { ...loaded.config, hostnameOverride }, label: `configured by ConfigMap ${PROXY_CONFIG_MAP}` }
  } catch (error) {
    return {
      config,
      label: `with the default configuration, because ConfigMap ${PROXY_CONFIG_MAP} is invalid: ${messageOf(error)}`,
    }
  }
}

function addressesOf(text: string | undefined): string[] {
  return (text ?? '').split(',').flatMap((each) => canonicalIp(each.trim()) ?? [])
}
