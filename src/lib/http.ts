// node:http, not imported: from Node 22 on, an import of it reads WebSocket, too, and Node then loads its WebSocket and fetch, 13 MB.

import type * as https from 'node:https'
import type * as tls from 'node:tls'

export const { Agent, createServer, request } = process.getBuiltinModule('node:http')

/** TLS, and HTTP over it: loaded when the first connection is to be encrypted, as that takes some milliseconds. */
export const secure = {
  get http(): typeof https {
    return process.getBuiltinModule('node:https')
  },
  get tls(): typeof tls {
    return process.getBuiltinModule('node:tls')
  },
}
