// The rooms of the house: what each folder of src is for, and what it may import. rooms.test.ts enforces it and writes the
// table of docs/architecture.md from it.

export interface Room {
  readonly folder: string
  readonly what: string
  /** The other rooms that it may import from; those in `types` for their types alone. */
  readonly imports: readonly string[]
  readonly types?: readonly string[]
  /**
   * `all`: every file may touch the world. Otherwise the files that may, by name; the others are pure: the same input, the
   * same output, and no effect.
   */
  readonly effects: 'all' | readonly string[]
}

const tools = ['lib', 'system', 'netlink'] as const

/** In the order in which they are best read: what comes later may build on what comes before. */
export const rooms: readonly Room[] = [
  {
    folder: 'lib',
    what: 'words without a domain: addresses, clock, log, hashes, durations',
    imports: [],
    effects: ['log-sinks.ts', 'http.ts'],
  },
  {
    folder: 'system',
    what: 'this process and its kernel, without a subject: system calls, programs, settings, network namespaces',
    imports: ['lib'],
    effects: 'all',
  },
  {
    folder: 'netlink',
    what: 'the tools of a codec: sockets, messages, attributes',
    imports: ['lib', 'system'],
    effects: ['socket.ts', 'client.ts', 'drain.ts', 'generic-netlink.ts', 'send-thread.ts', 'send-worker.ts'],
  },
  {
    folder: 'nftables',
    what: "tables as data, their text, differences, a packet's walk; `bytes/`; the driver and the watch",
    imports: tools,
    effects: [
      'driver.ts',
      'table-reader.ts',
      'listener.ts',
      'read-walkable.ts',
      'watch.ts',
      'watched-tables.ts',
      'open-counting.ts',
      'open-trace.ts',
      'probe.ts',
      'list-tables.ts',
    ],
  },
  {
    folder: 'iptables',
    what: "chains as data, their text, differences, a packet's walk; the programs, their lock, the watch",
    imports: [...tools, 'nftables'],
    effects: ['driver.ts', 'watch.ts', 'probe.ts', 'lock.ts', 'counters.ts', 'sets.ts'],
  },
  {
    folder: 'ipvs',
    what: "virtual servers as data, differences, draining, a packet's walk; `bytes/`; the driver",
    imports: [...tools, 'nftables'],
    effects: ['driver.ts'],
  },
  {
    folder: 'conntrack',
    what: 'the connection tracker: flows as data, their bytes, the driver',
    imports: tools,
    effects: ['driver.ts'],
  },
  {
    folder: 'links',
    what: 'links, addresses and routes; `bytes/`; the drivers and the watch',
    imports: tools,
    effects: ['driver.ts', 'watch.ts', 'addresses.ts', 'rtnetlink.ts', 'find-ways.ts'],
  },
  {
    folder: 'bpf',
    what: 'programs for the kernel to run, and maps for them to look things up in: instructions, their bytes, the system call',
    imports: ['lib', 'system'],
    effects: ['call.ts', 'hash-map.ts', 'socket-programs.ts'],
  },
  {
    folder: 'data-path',
    what: 'connections that this process carries itself: listeners, relays, the threads that serve them',
    imports: [...tools, 'conntrack'],
    effects: 'all',
  },
  {
    folder: 'kube',
    what: 'the API server: access, list and watch, objects, Events; files in its place',
    imports: ['lib'],
    effects: 'all',
  },
  {
    folder: 'config',
    what: 'KubeProxyConfiguration as one table: defaults, decoding, validation, watching the file',
    imports: ['lib'],
    effects: ['watch-file.ts'],
  },
  {
    folder: 'model',
    what: 'API objects become service ports with frontends: what happens to whose traffic, and why',
    imports: ['lib', 'kube'],
    effects: [],
  },
  {
    folder: 'retry',
    what: 'connections whose backend does not answer get another: the table, the log of failures, suspects and their trials',
    imports: [...tools, 'nftables', 'conntrack', 'model'],
    effects: ['retry-table.ts', 'nflog.ts', 'trial.ts', 'connect-retry.ts', 'cleanup.ts'],
  },
  {
    folder: 'connect',
    what: 'processes choose the endpoint of a cluster IP when they call connect(): which, the programs, the maps',
    imports: ['lib', 'bpf', 'model'],
    effects: ['cgroup.ts', 'connect-programs.ts', 'choose-at-connect.ts'],
  },
  {
    folder: 'metrics',
    what: "kube-proxy's metrics and our own, and the page that shows them",
    imports: ['lib'],
    effects: ['metrics.ts', 'process.ts'],
  },
  {
    folder: 'modes',
    what: 'one folder per mode, whole: `plan/` (pure), programmer, machine, and `mode.ts`, its descriptor; `contract.ts`, `all.ts`',
    imports: ['lib', 'system', 'nftables', 'iptables', 'ipvs', 'links', 'data-path', 'model', 'metrics'],
    types: ['config'],
    effects: 'all',
  },
  {
    folder: 'serve',
    what: 'the ports that answer: healthz, metrics, health checks of services',
    imports: ['lib'],
    effects: 'all',
  },
  {
    folder: 'control',
    what: 'the unix socket over which a running proxy can be asked: questions, the server, the client',
    imports: ['lib', 'model'],
    types: ['kube'],
    effects: ['server.ts', 'client.ts', 'bind-socket.ts', 'path.ts'],
  },
  {
    folder: 'proxy',
    what: 'the pipeline, and the composition of all of the above; nothing of one mode',
    imports: [
      'lib',
      'system',
      'conntrack',
      'links',
      'kube',
      'config',
      'model',
      'retry',
      'connect',
      'metrics',
      'modes',
      'serve',
      'control',
    ],
    effects: 'all',
  },
  {
    folder: 'check',
    what: '`kube-proxy check`: facts are read, then judged; changes nothing',
    imports: ['lib', 'system', 'nftables', 'kube', 'config', 'model', 'modes', 'proxy'],
    effects: ['read-machine.ts', 'read-api.ts', 'read-facts.ts', 'run-check.ts', 'judge-running.ts', 'find-proxies.ts'],
  },
  {
    folder: 'explain',
    what: '`kube-proxy explain`: a question, objects and the state of a kernel become an explanation as data, then text or a picture',
    imports: ['lib', 'nftables', 'iptables', 'kube', 'config', 'model', 'connect', 'modes', 'control', 'proxy'],
    effects: ['read-known.ts', 'read-kernel.ts', 'send.ts'],
  },
  {
    folder: 'doctor',
    what: '`kube-proxy doctor`: facts are read, then questions are asked in order; changes nothing',
    imports: ['lib', 'system', 'nftables', 'iptables', 'links', 'conntrack', 'kube', 'model', 'check', 'explain'],
    effects: ['read-machine.ts', 'read-facts.ts', 'examine-node.ts', 'dns.ts', 'installation.ts'],
  },
  {
    folder: 'preview',
    what: '`kube-proxy plan` and `kube-proxy render`: what would be programmed; changes nothing',
    imports: ['lib', 'kube', 'config', 'model', 'modes', 'control', 'proxy'],
    effects: 'all',
  },
  {
    folder: 'sandbox',
    what: 'a miniature cluster: network namespaces, an API server, controllers, pods; loaded on demand',
    imports: ['lib', 'system', 'links', 'kube'],
    effects: 'all',
  },
  {
    folder: 'ui',
    what: 'the page that shows a sandbox or a node, and its server; `page/` is what runs in the browser; loaded on demand',
    imports: ['lib', 'system', 'links', 'kube', 'model', 'modes', 'control', 'explain', 'sandbox'],
    effects: [
      'audience.ts',
      'eye-process.ts',
      'find-address.ts',
      'node-eye.ts',
      'node-source.ts',
      'proxy-watch.ts',
      'remote-eye.ts',
      'run-load.ts',
      'sandbox-hands.ts',
      'sandbox-objects.ts',
      'sandbox-source.ts',
      'server.ts',
    ],
  },
  {
    folder: 'cli',
    what: 'flags, help, commands',
    imports: [
      'lib',
      'system',
      'config',
      'modes',
      'control',
      'proxy',
      'check',
      'explain',
      'doctor',
      'preview',
      'sandbox',
      'ui',
    ],
    effects: 'all',
  },
]

/** Folders that keep to more than their room does. */
export const walls: readonly { readonly inside: RegExp; readonly never: RegExp; readonly why: string }[] = [
  {
    inside: /^src\/model\//,
    never: /^src\/kube\/(?!types\.ts)/,
    why: 'the model knows what objects are, not where they come from',
  },
  {
    inside: /^src\/modes\/(\w+)\//,
    never: /^src\/modes\/(?!$1\/|shared\/|contract\.ts|programmer\.ts|rehearsal\.ts|rehearse-table\.ts|traffic\.ts)/,
    why: 'a mode is whole in its folder: modes do not import each other',
  },
  {
    inside: /^src\/modes\/\w+\/plan\//,
    never: /^src\/(system|metrics|config)\/|\/(driver|watch|probe|programmer|machine|mode)\.ts$/,
    why: 'a plan is pure',
  },
  {
    inside: /^src\/(?!modes\/|cli\/)/,
    never: /^src\/modes\/(?!contract\.ts|all\.ts|programmer\.ts|rehearsal\.ts)/,
    why: 'what others need of a mode is in its descriptor',
  },
  {
    inside: /^src\/cli\/(?!sandbox)/,
    never: /^src\/(sandbox|cli\/sandbox)/,
    why: 'the program does not contain the sandbox',
  },
  {
    inside: /^src\/(?!sandbox\/)/,
    never: /^node:http$/,
    why: 'src/lib/http.ts has what is needed of node:http, which brings WebSocket and fetch along',
  },
]
