// The rooms of the house: what each folder of src is for, and what it may import. rooms.test.ts enforces it and writes the
// table of docs/architecture.md from it.

export interface Room {
  /** Below src, or `sandbox`: the package. */
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
    imports: ['lib', 'system', 'nftables'],
    effects: ['driver.ts', 'watch.ts', 'probe.ts', 'lock.ts'],
  },
  {
    folder: 'ipset',
    what: 'sets of ipset, which other programs leave behind',
    imports: ['lib', 'netlink'],
    effects: ['driver.ts'],
  },
  {
    folder: 'nfacct',
    what: 'counters of nfacct, which rules of iptables may name',
    imports: ['lib', 'netlink'],
    effects: ['driver.ts'],
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
    folder: 'metrics',
    what: "kube-proxy's metrics and our own, and the page that shows them",
    imports: ['lib'],
    effects: ['metrics.ts', 'process.ts'],
  },
  {
    folder: 'serve',
    what: 'what answers questions: healthz, metrics, health checks of services; `control/`: the unix socket over which a running proxy can be asked',
    imports: ['lib', 'model'],
    types: ['kube'],
    effects: 'all',
  },
  {
    folder: 'reconcile',
    what: 'one IP family: when the kernel is made to agree with the model, and what follows',
    imports: ['lib', 'model', 'metrics', 'serve'],
    effects: 'all',
  },
  {
    folder: 'table-sync',
    what: 'a table of nftables that is kept as service ports want it: step by step, and compared as a whole',
    imports: ['lib', 'nftables', 'model', 'reconcile'],
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
    imports: ['lib', 'bpf', 'model', 'table-sync'],
    effects: ['cgroup.ts', 'connect-programs.ts', 'choose-at-connect.ts'],
  },
  {
    folder: 'modes',
    what: 'one folder per mode, whole: `plan/` (pure), programmer, machine, and `mode.ts`, its descriptor; `contract.ts`, `all.ts`',
    imports: [
      'ipset',
      'nfacct',
      'lib',
      'system',
      'nftables',
      'iptables',
      'ipvs',
      'links',
      'data-path',
      'model',
      'metrics',
      'reconcile',
      'table-sync',
    ],
    types: ['config'],
    effects: 'all',
  },
  {
    folder: 'compose',
    what: 'a proxy put together of all of the above; nothing of one mode',
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
      'reconcile',
    ],
    effects: 'all',
  },
  {
    folder: 'diagnose',
    what: '`check/`, `explain/`, `doctor/` and `preview/` (`plan`, `render`): facts are read, then judged; they change nothing',
    imports: [
      'lib',
      'system',
      'nftables',
      'iptables',
      'links',
      'conntrack',
      'kube',
      'config',
      'model',
      'serve',
      'connect',
      'modes',
      'compose',
    ],
    effects: [
      'check/read-machine.ts',
      'check/read-api.ts',
      'check/read-facts.ts',
      'check/run-check.ts',
      'check/judge-running.ts',
      'check/find-proxies.ts',
      'explain/read-known.ts',
      'explain/read-kernel.ts',
      'explain/send.ts',
      'doctor/read-machine.ts',
      'doctor/read-facts.ts',
      'doctor/examine-node.ts',
      'doctor/dns.ts',
      'doctor/installation.ts',
      'preview/read-cluster.ts',
      'preview/rehearse.ts',
    ],
  },
  {
    folder: 'ui',
    what: 'the page that shows a sandbox or a node, and its server; `page/` is what runs in the browser; loaded on demand',
    imports: ['lib', 'system', 'kube', 'model', 'modes', 'serve', 'diagnose'],
    effects: ['audience.ts', 'node-eye.ts', 'node-source.ts', 'proxy-watch.ts', 'server.ts'],
  },
  {
    folder: 'sandbox',
    what: 'a miniature cluster: network namespaces, an API server, controllers, pods; loaded on demand',
    imports: ['lib', 'system', 'links', 'kube', 'model', 'modes', 'serve', 'diagnose', 'ui'],
    effects: 'all',
  },
  {
    folder: 'cli',
    what: 'flags, help, commands',
    imports: ['lib', 'system', 'config', 'modes', 'serve', 'compose', 'diagnose', 'sandbox', 'ui'],
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
    never:
      /^src\/modes\/(?!$1\/|advise-on-tables\.ts|contract\.ts|programmer\.ts|rehearsal\.ts|rehearse-table\.ts|traffic\.ts)/,
    why: 'a mode is whole in its folder: modes do not import each other',
  },
  {
    inside: /^src\/(modes\/\w+|table-sync)\/plan\//,
    never: /^src\/(system|metrics|config)\/|\/(driver|watch|probe|programmer|machine|mode)\.ts$/,
    why: 'a plan is pure',
  },
  {
    inside: /^src\/(?!modes\/|cli\/)/,
    never: /^src\/modes\/(?!contract\.ts|all\.ts|programmer\.ts|rehearsal\.ts)/,
    why: 'what others need of a mode is in its descriptor',
  },
  {
    inside: /^src\//,
    never: /^packages\/sandbox\//,
    why: 'the program does not contain the sandbox',
  },
  {
    inside: /^src\//,
    never: /^node:http$/,
    why: 'src/lib/http.ts has what is needed of node:http, which brings WebSocket and fetch along',
  },
]
