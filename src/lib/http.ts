// HTTP without `node:http`. Since Node 22 that module brings Node's WebSocket and fetch with it, which no file here uses: 13 MB in
// a program that does nothing else, and as much time as the rest of Node takes to start. Its parts are modules as well, without that.

import type * as http from 'node:http'
import type * as https from 'node:https'
import type * as tls from 'node:tls'

type Http = Pick<typeof http, 'Agent' | 'createServer' | 'request'>

type Part = Readonly<Record<string, new (...args: readonly unknown[]) => object>>

const getModule = (name: string) => process.getBuiltinModule(name) as Part | undefined

/** Undefined where some later Node has no such parts. */
function partsOfHttp(): Http | undefined {
  const { Agent: AgentOfNode } = getModule('node:_http_agent') ?? {}
  const { ClientRequest } = getModule('node:_http_client') ?? {}
  const { Server } = getModule('node:_http_server') ?? {}
  if (AgentOfNode === undefined || ClientRequest === undefined || Server === undefined) return undefined
  return {
    Agent: AgentOfNode as unknown as typeof http.Agent,
    createServer: ((...args: readonly unknown[]) => new Server(...args)) as typeof http.createServer,
    request: ((...args: readonly unknown[]) => new ClientRequest(...args)) as typeof http.request,
  }
}

export const { Agent, createServer, request }: Http = partsOfHttp() ?? process.getBuiltinModule('node:http')

/** TLS, and HTTP over it: loaded when the first connection is to be encrypted, as that takes some milliseconds. */
export const secure = {
  get http(): typeof https {
    return process.getBuiltinModule('node:https')
  },
  get tls(): typeof tls {
    return process.getBuiltinModule('node:tls')
  },
}
