// /debug/pprof/: profiles of this process, in V8's formats.
//
// Go's formats cannot be offered: there are no goroutines here, and V8 writes files of its own, which Chrome's developer
// tools, VS Code and speedscope open. The paths are pprof's where what they give is the same thing in kind.

import { Session } from 'node:inspector/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { textReply, type Page } from './reply.ts'
import type { Reply } from './http-server.ts'

const prefix = '/debug/pprof/'
const LONGEST_SECONDS = 300

interface Profile {
  readonly what: string
  readonly read: (query: URLSearchParams) => Promise<Reply>
}

const profiles: Readonly<Record<string, Profile>> = {
  profile: { what: 'where CPU time goes, for ?seconds=30; a .cpuprofile', read: readCpuProfile },
  allocs: { what: 'where memory is allocated, for ?seconds=30; a .heapprofile', read: readAllocationProfile },
  cmdline: { what: 'the command line', read: () => Promise.resolve(textReply(200, process.argv.join('\0'))) },
}

/** Its strings are in it: the token of this node's account, and private keys. What leaves over HTTP, any host on the way may read. */
const notOverHttp = ['heap']

const onlyInGo = ['block', 'goroutine', 'mutex', 'symbol', 'threadcreate', 'trace']

export const profilesPage: Page = async ({ path, query }) => {
  const name = path.slice(prefix.length)
  if (name === '') return textReply(200, index())
  const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined
  if (profile !== undefined) return profile.read(query)
  const why = onlyInGo.includes(name)
    ? 'is about the Go runtime, and this program runs on Node.js'
    : notOverHttp.includes(name)
      ? 'would show credentials; allocs shows where memory goes without them'
      : 'is unknown'
  return textReply(404, `Cannot show the profile ${JSON.stringify(name)}: it ${why}\n\n${index()}`)
}

function index(): string {
  const lines = Object.entries(profiles).map(([name, { what }]) => `${prefix}${name}  ${what}\n`)
  return `Profiles of this process, for Chrome's developer tools, VS Code or speedscope:\n${lines.join('')}`
}

/** One at a time: two would stop each other. */
let profiling = false

async function withSession(name: string, use: (session: Session) => Promise<string>): Promise<Reply> {
  if (profiling) return textReply(409, `Cannot take ${name}: another profile is being taken\n`)
  profiling = true
  const session = new Session()
  try {
    session.connect()
    const disposition = `attachment; filename="kube-proxy.${name}"`
    const headers = { 'Content-Type': 'application/json', 'Content-Disposition': disposition }
    return { status: 200, headers, body: await use(session) }
  } finally {
    session.disconnect()
    profiling = false
  }
}

async function forSeconds(query: URLSearchParams, use: (ms: number) => Promise<Reply>): Promise<Reply> {
  const text = query.get('seconds') ?? '30'
  const seconds = Number(text)
  if (seconds > 0 && seconds <= LONGEST_SECONDS) return use(seconds * 1000)
  return textReply(400, `Cannot profile for ${JSON.stringify(text)} seconds: must be 1 to ${LONGEST_SECONDS}\n`)
}

function readCpuProfile(query: URLSearchParams): Promise<Reply> {
  return forSeconds(query, (ms) =>
    withSession('cpuprofile', async (session) => {
      await session.post('Profiler.enable')
      await session.post('Profiler.start')
      await sleep(ms)
      const { profile } = await session.post('Profiler.stop')
      await session.post('Profiler.disable')
      return JSON.stringify(profile)
    }),
  )
}

function readAllocationProfile(query: URLSearchParams): Promise<Reply> {
  return forSeconds(query, (ms) =>
    withSession('heapprofile', async (session) => {
      await session.post('HeapProfiler.startSampling')
      await sleep(ms)
      const { profile } = await session.post('HeapProfiler.stopSampling')
      return JSON.stringify(profile)
    }),
  )
}
