// The commands of the plugin. Those of the proxy run in its pod: their output and exit status are passed on.

import { paintFor } from '../diagnose/paint.ts'
import { UsageError } from '../lib/command.ts'
import { flagsOfConfig, readManifests } from './as-manifests.ts'
import { placeOfClient, podNamed, withAddress } from '../diagnose/choose-node.ts'
import { Cluster, type RunningPod } from './cluster.ts'
import { inDebugPod } from './debug-pod.ts'
import { runAndFollow } from './follow.ts'
import { inParallel } from './in-parallel.ts'
import type { ParsedArguments, PluginOptions } from './parse-arguments.ts'
import type { ProxyPod } from './proxies.ts'
import { formatStatuses, isHealthy, readStatuses } from './status.ts'
import { collectSysdump, writeSysdump } from './sysdump.ts'
import { runTest } from './test.ts'

/** Answers the exit status. */
export async function runCommand({ command, options, words }: ParsedArguments): Promise<number> {
  const cluster = new Cluster(options)
  try {
    switch (command) {
      case 'status':
        return await status(cluster, options, words)
      case 'sysdump':
        return await sysdump(cluster, options, words)
      case 'explain':
        return await explain(cluster, options, words)
      case 'doctor':
        return await doctor(cluster, options, words)
      case 'flows':
        return await flows(cluster, options, words)
      case 'top':
        return await passThrough(cluster, await chooseProxy(cluster, options.node), ['top', ...words])
      case 'test':
        return await runTest(cluster, options, words)
      default:
        throw new UsageError(`unknown command ${command}; commands: explain, doctor, top, flows, status, test, sysdump`)
    }
  } finally {
    cluster.close()
  }
}

async function status(cluster: Cluster, { timeoutMs, node }: PluginOptions, words: readonly string[]): Promise<number> {
  const isJson = /^(-o|--output)=?json$/.test(words.join(''))
  if (words.length > 0 && !isJson)
    throw new UsageError(`status takes -o json, and was given ${JSON.stringify(words.join(' '))}`)
  const all = await readStatuses(cluster, timeoutMs)
  const statuses = node === undefined ? all : all.filter((each) => each.node === node)
  if (statuses.length === 0)
    throw new UsageError(node === undefined ? 'the cluster has no nodes' : `there is no node ${node}`)
  process.stdout.write(
    isJson ? `${JSON.stringify({ version: 1, nodes: statuses }, null, 2)}\n` : formatStatuses(statuses),
  )
  return isHealthy(statuses) ? 0 : 2
}

async function sysdump(
  cluster: Cluster,
  { namespace, timeoutMs, file }: PluginOptions,
  words: readonly string[],
): Promise<number> {
  if (words.length > 0)
    throw new UsageError(`sysdump takes --file FILE, and was given ${JSON.stringify(words.join(' '))}`)
  const nowMs = Date.now()
  const name = file ?? `kubeproxy-sysdump-${new Date(nowMs).toISOString().slice(0, 19).replaceAll(':', '')}.tar.gz`
  say(`reading ${cluster.server}`)
  const files = await collectSysdump(cluster, { namespace, timeoutMs })
  writeSysdump(name, files, nowMs)
  const errors = files.find(({ path }) => path === 'errors.txt')
  if (errors !== undefined)
    say(`${errors.content.toString().trim().split('\n').length} parts are missing: see errors.txt in it`)
  process.stdout.write(`${name}\n`)
  return 0
}

/** On the node of the client, if that is a pod: there its connection is translated. */
async function clientOf(
  cluster: Cluster,
  command: string,
  words: readonly string[],
): Promise<{ readonly node: string | undefined; readonly words: readonly string[] }> {
  const at = placeOfClient(command, words)
  const pod = at === undefined || words[at] === undefined ? undefined : podNamed(words[at])
  if (at === undefined || pod === undefined) return { node: undefined, words }
  const found = await cluster.findPod(pod.namespace, pod.name)
  if (found === undefined)
    throw new UsageError(`there is no pod ${pod.namespace}/${pod.name}; FROM is a pod, an address, node or outside`)
  const { nodeName } = found.spec
  const ip = found.status?.podIP
  if (nodeName === undefined || ip === undefined)
    throw new UsageError(`pod ${pod.namespace}/${pod.name} has no address yet`)
  return { node: nodeName, words: withAddress(words, at, ip) }
}

async function explain(cluster: Cluster, options: PluginOptions, given: readonly string[]): Promise<number> {
  const { node, words } = await clientOf(cluster, 'explain', given)
  const proxy = await chooseProxy(cluster, options.node ?? node, 'any')
  if (proxy.kind === 'kube-proxy-ts') {
    if (!isFollowed(words)) return passThrough(cluster, proxy, ['explain', ...words])
    const { status: only, stdout, stderr } = await runThere(cluster, proxy, { command: 'explain', words, options })
    process.stdout.write(stdout)
    process.stderr.write(stderr)
    return only
  }
  return inOther(cluster, proxy, options, (pod, { stdin, flags }) =>
    cluster.exec(pod, ['kube-proxy', 'explain', ...flags, '--kernel', ...words], { ...outputs, stdin }),
  )
}

/** On a node with another kube-proxy: in a pod that reads its kernel, and gets the objects on its standard input. */
async function inOther<T>(
  cluster: Cluster,
  proxy: ProxyPod,
  { image, timeoutMs, namespace }: PluginOptions,
  work: (pod: RunningPod, how: { readonly stdin: string; readonly flags: readonly string[] }) => Promise<T>,
): Promise<T> {
  if (image === undefined) {
    throw new UsageError(
      `node ${proxy.node} runs another kube-proxy (${proxy.image}): give an image of kube-proxy-ts, and a pod for a moment reads the kernel there: --image=REGISTRY/kube-proxy-ts:TAG`,
    )
  }
  const [stdin, flags] = await Promise.all([readManifests(cluster), flagsOf(cluster, proxy)])
  say(`reading the kernel of ${proxy.node} in a pod of ${image}`)
  const from = ['--manifests=-', `--node=${proxy.node}`, ...flags]
  return inDebugPod(cluster, { node: proxy.node, image, namespace, timeoutMs }, (pod) =>
    work(pod, { stdin, flags: from }),
  )
}

/** How the other kube-proxy runs: by its ConfigMap, where kubeadm puts it. */
async function flagsOf(cluster: Cluster, { namespace }: ProxyPod): Promise<string[]> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/configmaps/kube-proxy`
  try {
    const { data = {} } = await cluster.get<{ data?: Record<string, string> }>(path)
    return flagsOfConfig(data['config.conf'] ?? '')
  } catch {
    say(
      `ConfigMap ${namespace}/kube-proxy cannot be read: the mode is taken to be iptables; -- --proxy-mode=MODE says otherwise`,
    )
    return flagsOfConfig('')
  }
}

async function doctor(cluster: Cluster, options: PluginOptions, given: readonly string[]): Promise<number> {
  const { node, words } = await clientOf(cluster, 'doctor', given)
  const chosen = options.node ?? node
  const { image, timeoutMs } = options
  const proxies =
    chosen !== undefined ? [await chooseProxy(cluster, chosen, 'any')] : await ours(cluster, image !== undefined)
  const ask = (proxy: ProxyPod) =>
    proxy.kind === 'kube-proxy-ts'
      ? runThere(cluster, proxy, { command: 'doctor', words, options })
      : inOther(cluster, proxy, options, (pod, { stdin, flags }) =>
          cluster.run(pod, ['kube-proxy', 'doctor', ...flags, ...words], { stdin, timeoutMs }),
        )
  if (chosen !== undefined) {
    const { status: only, stdout, stderr } = await ask(proxies[0]!)
    process.stdout.write(stdout)
    process.stderr.write(stderr)
    return only
  }
  const answers = await inParallel(proxies, async (proxy) => ({
    proxy,
    ...(await ask(proxy).catch((error: unknown) => ({ status: 1, stdout: '', stderr: String(error) }))),
  }))
  for (const { proxy, stdout, stderr } of answers) process.stdout.write(`--- ${proxy.node}\n${stdout}${stderr}\n`)
  // What was found outranks what could not be asked, and that what is open.
  const statuses = answers.map(({ status: each }) => each)
  return [2, 1, 3].find((each) => statuses.includes(each)) ?? 0
}

/** Packets are followed to the end on the endpoint's node, too, where people read the answer. */
function isFollowed(words: readonly string[]): boolean {
  return words.includes('--send') && !words.some((each) => /^(-o|--output)/.test(each))
}

function runThere(
  cluster: Cluster,
  from: ProxyPod,
  {
    command,
    words,
    options: { timeoutMs },
  }: { readonly command: 'doctor' | 'explain'; readonly words: readonly string[]; readonly options: PluginOptions },
): ReturnType<Cluster['run']> {
  if (!isFollowed(words)) return cluster.run(from, ['kube-proxy', command, ...words], { timeoutMs })
  return runAndFollow(cluster, { command, words, from, timeoutMs, paint: paintFor(process.stdout, process.env) })
}

/** Of all nodes at once, unless one is chosen. */
async function flows(cluster: Cluster, { node }: PluginOptions, words: readonly string[]): Promise<number> {
  const proxies = node === undefined ? await ours(cluster) : [await chooseProxy(cluster, node)]
  const statuses = await Promise.all(proxies.map((proxy) => passThrough(cluster, proxy, ['flows', ...words])))
  return Math.max(...statuses)
}

async function ours(cluster: Cluster, andOthers = false): Promise<ProxyPod[]> {
  const proxies = [...(await cluster.proxies()).values()].filter(({ kind }) => andOthers || kind === 'kube-proxy-ts')
  if (proxies.length === 0)
    throw new UsageError(
      'no node runs kube-proxy-ts: only status, sysdump, and explain and doctor with --image=IMAGE work here. Other namespace: --namespace',
    )
  return proxies.sort((a, b) => (a.node < b.node ? -1 : 1))
}

/** Of the node, or of the first when none is named. */
async function chooseProxy(
  cluster: Cluster,
  node: string | undefined,
  kind: 'ours' | 'any' = 'ours',
): Promise<ProxyPod> {
  const proxies = await cluster.proxies()
  const usable = [...proxies.values()].filter((proxy) => kind === 'any' || proxy.kind === 'kube-proxy-ts')
  if (node === undefined) {
    const [first] = usable.sort((a, b) => (a.node < b.node ? -1 : 1))
    if (first === undefined) throw new UsageError('no pod of a kube-proxy was found. Other namespace: --namespace')
    if (usable.length > 1) say(`asking ${first.node}; --node chooses another`)
    return first
  }
  const found = usable.find((proxy) => proxy.node === node)
  if (found !== undefined) return found
  const other = proxies.get(node)
  throw new UsageError(
    other === undefined
      ? `no pod of a kube-proxy runs on node ${node}; nodes with one: ${[...proxies.keys()].sort().slice(0, 10).join(', ') || 'none'}`
      : `node ${node} runs another kube-proxy (${other.image}), which cannot be asked; explain and doctor with --image=IMAGE work there`,
  )
}

const outputs = {
  onStdout: (bytes: Buffer) => void process.stdout.write(Buffer.from(bytes)),
  onStderr: (bytes: Buffer) => void process.stderr.write(Buffer.from(bytes)),
}

function passThrough(cluster: Cluster, pod: ProxyPod, command: readonly string[]): Promise<number> {
  return cluster.exec(pod, ['kube-proxy', ...command], outputs)
}

function say(text: string): void {
  process.stderr.write(`kubectl kubeproxy: ${text}\n`)
}
