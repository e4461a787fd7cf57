// `kube-proxy sandbox`: starts one, says what was made and what to type next, and takes it down at the end.

import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { collectInTime } from '../../../../src/system/give-back.ts'
import { dieWithParent } from '../../../../src/system/process.ts'
import { KernelError, messageOf } from '../../../../src/lib/errors.ts'
import type { ExampleService } from '../example.ts'
import { instancesFolder } from '../instance/instance-folder.ts'
import { formatReport } from '../report.ts'
import type { Sandbox } from '../sandbox.ts'
import type { UiServer } from '../../../../src/ui/server.ts'
import { surviveClosedStreams } from '../../../../src/lib/log-sinks.ts'
import {
  announce,
  isInBackground,
  isInsideUserNamespace,
  mayBuildNetworks,
  outerPageSocket,
  outerSocket,
  rerun,
} from './sandbox-rerun.ts'

export interface StartCommand {
  readonly name: string | undefined
  readonly nodes: number
  readonly mode: string
  readonly stack: 'IPv4' | 'dual'
  readonly content: 'example' | 'empty'
  readonly life: 'foreground' | 'detached'
  /** More flags for each node's proxy. */
  readonly proxyFlags: readonly string[]
}

/** Tools that the next commands use, and the Debian packages that have them. */
const tools = { kubectl: 'kubernetes-client', curl: 'curl' } as const

export async function runSandboxStart(command: StartCommand, argv: readonly string[]): Promise<number> {
  const where = isInsideUserNamespace() || mayBuildNetworks() ? 'as we are' : 'user namespace'
  if (where === 'user namespace' || (command.life === 'detached' && !isInBackground())) {
    return rerun(argv, { where, life: command.life })
  }
  if (isInsideUserNamespace() && command.life === 'foreground') dieWithParent()
  surviveClosedStreams()
  collectInTime()
  const end = untilSignal()
  const sandbox = await openSandbox(command).catch((error: unknown) => {
    throw withRemedy(error)
  })
  let page: Page | undefined
  try {
    // It takes no longer than the sandbox, and can wait for it.
    const loaded = loadPage()
    const services = await Promise.race([sandbox.start(), end.promise])
    if (services !== undefined) {
      page = await openPage(await loaded, sandbox)
      report(command, reportOf({ command, sandbox, services, pageUrl: page.url }))
    }
    await end.promise
  } finally {
    await page?.server.close('The sandbox was taken down')
    await sandbox.close()
  }
  return Number(process.exitCode ?? 0)
}

/** The rights that this process seems to have may still be kept from it, as in a container. */
function withRemedy(error: unknown): unknown {
  if (!(error instanceof KernelError) || (error.errno !== 'EPERM' && error.errno !== 'EACCES')) return error
  return new Error(`${error.message}; run it as root (put sudo in front), in a container with --privileged`, {
    cause: error,
  })
}

async function openSandbox(command: StartCommand): Promise<Sandbox> {
  const { Sandbox } = await import('../sandbox.ts')
  return new Sandbox({
    root: instancesFolder(),
    name: command.name,
    nodes: command.nodes,
    mode: command.mode,
    families: command.stack === 'dual' ? [4, 6] : [4],
    content: command.content,
    proxyFlags: command.proxyFlags,
    privilege: isInsideUserNamespace() ? 'user namespace' : 'root',
    outerSocket: outerSocket(),
    onNotice: (line) => {
      if (command.life === 'foreground') process.stdout.write(`${line}\n`)
    },
  })
}

interface Page {
  readonly server: UiServer
  readonly url: string
}

async function loadPage() {
  const [{ UiServer }, { SandboxSource }] = await Promise.all([
    import('../../../../src/ui/server.ts'),
    import('../ui/sandbox-source.ts'),
  ])
  return { UiServer, SandboxSource }
}

/** On the loopback of the machine, and on its link to the sandbox. */
async function openPage(
  { UiServer, SandboxSource }: Awaited<ReturnType<typeof loadPage>>,
  sandbox: Sandbox,
): Promise<Page> {
  const server = new UiServer({ source: new SandboxSource(sandbox, ownCommand()) })
  const outer = outerPageSocket()
  const url = await server.listen({ host: '127.0.0.1', port: 0, ...outer })
  const port = Number(new URL(url).port)
  // Another program may have the port there: loopback has to do then.
  for (const host of sandbox.network.plan.machine.slice(0, 1)) await server.listen({ host, port }).catch(() => {})
  return { server, url }
}

/** On the terminal, or through the process that waits for this one and goes away then. */
function report({ life }: StartCommand, text: string): void {
  if (life === 'detached') announce({ ready: text })
  else process.stdout.write(text)
}

interface Started {
  readonly command: StartCommand
  readonly sandbox: Sandbox
  readonly services: readonly ExampleService[]
  readonly pageUrl: string
}

function reportOf({ command, sandbox, services, pageUrl }: Started): string {
  const { folder, network, pods } = sandbox
  return formatReport({
    // Since the process was started: what a person at the terminal sees.
    tookMs: performance.now(),
    mode: command.mode,
    nodes: network.nodes.map(({ plan }) => plan),
    pods: pods.list().filter(({ namespace }) => namespace !== 'kube-system'),
    services,
    kubeconfig: folder.kubeconfig,
    pageUrl,
    command: ownCommand(),
    machine: isInsideUserNamespace() ? 'apart' : 'connected',
    life: command.life,
    name: folder.name === 'sandbox' ? undefined : folder.name,
    missingTools: missingTools(),
  })
}

/** Resolves on the first signal to end; a second one does not wait for anything. */
function untilSignal(): { readonly promise: Promise<undefined> } {
  let hasCome = false
  const promise = new Promise<undefined>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        if (hasCome && signal === 'SIGINT') process.exit(130)
        hasCome = true
        resolve(undefined)
      })
    }
    process.on('uncaughtException', (error) => {
      process.stderr.write(
        `kube-proxy: Unexpected error, taking the sandbox down: ${messageOf(error)}\n${error.stack}\n`,
      )
      process.exitCode = 1
      resolve(undefined)
    })
  })
  return { promise }
}

/** How the program is called from here. */
function ownCommand(): string {
  const launcher = fileURLToPath(new URL('../../../../../bin/kube-proxy', import.meta.url))
  const path = relative(process.cwd(), launcher)
  const shown = path.startsWith('..') ? launcher : `./${path}`
  const program = existsSync(launcher) ? shown : 'kube-proxy'
  return process.env['SUDO_USER'] === undefined ? program : `sudo ${program}`
}

function missingTools(): string[] {
  return Object.entries(tools).flatMap(([tool, packageName]) =>
    isInPath(tool) ? [] : [`There is no ${tool} in PATH: Debian has it in the package ${packageName}.`],
  )
}

function isInPath(tool: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, tool), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
