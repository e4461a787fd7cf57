// What each folder is for and what it may import. folders.test.ts enforces this table and copies it into docs/architecture.md.

export interface Folder {
  /** Below src, or `sandbox`: the package. */
  readonly folder: string
  readonly what: string
  /** The folders that it may import from; those in `types` for their types alone. */
  readonly imports: readonly string[]
  readonly types?: readonly string[]
  /** `all`: every file may do I/O. Otherwise the files that may, by name; the others do no I/O themselves. */
  readonly effects: 'all' | readonly string[]
}

const tools = ['lib', 'system', 'netlink'] as const

/** In reading order: a folder may import only folders above it. */
export const folders: readonly Folder[] = [
  {
    folder: 'lib',
    what: 'utilities without a domain: addresses, clock, log, hashes, durations',
    imports: [],
    effects: ['log-sinks.ts', 'http.ts', 'watch-path.ts'],
  },
  {
    folder: 'system',
    what: 'the process and the kernel in general: system calls, running programs, sysctls, network namespaces',
    imports: ['lib'],
    effects: 'all',
  },
  {
    folder: 'netlink',
    what: 'netlink: sockets, messages, attributes',
    imports: ['lib', 'system'],
    effects: ['socket.ts', 'client.ts', 'drain.ts', 'generic-netlink.ts', 'send-thread.ts', 'send-worker.ts'],
  },
  {
    folder: 'bpf',
    what: 'BPF programs and maps: instructions, their bytes, the system call; packet filters',
    imports: ['lib', 'system'],
    effects: ['btf.ts', 'call.ts', 'drop-watch.ts', 'hash-map.ts', 'packet-filter.ts', 'socket-programs.ts'],
  },
  {
    folder: 'packet-walk',
    what: "a packet's way through the kernel, computed: the types that nftables, iptables and IPVS share",
    imports: ['lib'],
    effects: [],
  },
  {
    folder: 'nftables',
    what: "nftables as data: nft's text, diffs, a packet's walk; `bytes/`: the netlink codec; the driver and the watch",
    imports: [...tools, 'bpf', 'packet-walk'],
    effects: [
      'driver.ts',
      'table-reader.ts',
      'listener.ts',
      'read-walkable.ts',
      'watch.ts',
      'watched-tables.ts',
      'open-trace.ts',
      'probe.ts',
      'list-tables.ts',
    ],
  },
  {
    folder: 'iptables',
    what: "iptables as data: text, diffs, a packet's walk; running the programs, their lock, the watch",
    imports: ['lib', 'system', 'packet-walk', 'nftables'],
    effects: ['driver.ts', 'watch.ts', 'probe.ts', 'lock.ts'],
  },
  {
    folder: 'ipset',
    what: 'ipset: listing and deleting sets that kube-proxy left behind',
    imports: ['lib', 'netlink'],
    effects: ['destroy-sets.ts'],
  },
  {
    folder: 'nfacct',
    what: 'nfacct: the counters that iptables rules name',
    imports: ['lib', 'netlink'],
    effects: ['counters.ts'],
  },
  {
    folder: 'ipvs',
    what: "IPVS: virtual servers as data, diffs, draining, a packet's walk; `bytes/`: the netlink codec; the driver",
    imports: [...tools, 'packet-walk'],
    effects: ['driver.ts'],
  },
  {
    folder: 'conntrack',
    what: 'conntrack: flows as data, their bytes, the driver, the watch and what it tells of ends',
    imports: [...tools, 'bpf'],
    effects: ['driver.ts', 'watch.ts', 'watch-ends.ts'],
  },
  {
    folder: 'links',
    what: 'links, addresses and routes; `bytes/`: the netlink codec; the drivers and the watch',
    imports: tools,
    effects: ['driver.ts', 'watch.ts', 'addresses.ts', 'rtnetlink.ts', 'find-ways.ts'],
  },
  {
    folder: 'traffic',
    what: 'counts what goes through services: an nftables table that counts, which exists while a client asks',
    imports: ['lib', 'nftables'],
    effects: ['open-counting.ts'],
  },
  {
    folder: 'data-path',
    what: 'connections that the proxy relays itself: listeners, relays, worker threads',
    imports: [...tools, 'conntrack'],
    effects: 'all',
  },
  {
    folder: 'kube',
    what: 'the API server: credentials, list and watch, decoding objects, Events; `--manifests` in its place',
    imports: ['lib'],
    effects: 'all',
  },
  {
    folder: 'config',
    what: 'KubeProxyConfiguration: a table of fields, defaults, decoding, validation, watching the file',
    imports: ['lib'],
    effects: ['watch-file.ts'],
  },
  {
    folder: 'model',
    what: 'turns API objects into service ports with frontends: what happens to which traffic, and why',
    imports: ['lib', 'kube'],
    effects: [],
  },
  {
    folder: 'flows',
    what: 'connections through Services, from notifications of conntrack, with names; the flow log',
    imports: ['lib', 'conntrack', 'model'],
    effects: ['flow-watch.ts', 'flow-file.ts', 'otlp.ts'],
  },
  {
    folder: 'metrics',
    what: "kube-proxy's metrics, our own, and the formats of `/metrics`",
    imports: ['lib'],
    effects: ['metrics.ts', 'process.ts'],
  },
  {
    folder: 'serve',
    what: 'the HTTP servers: healthz, metrics, health check node ports; `control/`: the unix socket for root',
    imports: ['lib', 'model'],
    types: ['traffic', 'kube', 'flows'],
    effects: 'all',
  },
  {
    folder: 'reconcile',
    what: 'one IP family: the queue that writes to the kernel, and what follows a write',
    imports: ['lib', 'model', 'metrics', 'serve'],
    effects: [],
  },
  {
    folder: 'table-sync',
    what: 'keeps an nftables table in step with the service ports: by diffs, and by comparison with the kernel',
    imports: ['lib', 'nftables', 'model', 'reconcile'],
    effects: [],
  },
  {
    folder: 'retry',
    what: 'connect retry: the nftables table, the log of failures, suspects and probes',
    imports: [...tools, 'nftables', 'conntrack', 'model'],
    effects: ['retry-table.ts', 'nflog.ts', 'trial.ts', 'connect-retry.ts', 'cleanup.ts'],
  },
  {
    folder: 'connect',
    what: 'the choice at connect(): which frontends, the BPF programs, the maps',
    imports: ['lib', 'bpf', 'model', 'table-sync'],
    effects: ['cgroup.ts', 'connect-programs.ts', 'choose-at-connect.ts'],
  },
  {
    folder: 'modes',
    what: 'one folder per mode: `plan/` (pure), the programmer, `mode.ts` (its descriptor); `contract.ts`, `all.ts`',
    imports: [
      'packet-walk',
      'traffic',
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
    what: 'puts a proxy together; knows no mode',
    imports: [
      'traffic',
      'flows',
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
    what: '`check`, `explain`, `doctor`, and `preview/` (`plan`, `render`): read facts, judge them, change nothing',
    imports: [
      'bpf',
      'packet-walk',
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
      'explain/drops.ts',
      'explain/send.ts',
      'doctor/packets.ts',
      'doctor/read-api.ts',
      'doctor/read-machine.ts',
      'doctor/read-facts.ts',
      'doctor/read-proxy.ts',
      'doctor/examine-node.ts',
      'doctor/dns.ts',
      'doctor/installation.ts',
      'preview/preview-mode.ts',
      'read-text.ts',
    ],
  },
  {
    folder: 'ui',
    what: 'the web page of a sandbox or a node, and its server; `page/` runs in the browser; loaded on demand',
    imports: ['lib', 'system', 'kube', 'model', 'modes', 'serve', 'diagnose'],
    effects: ['event-streams.ts', 'node-inspector.ts', 'node-source.ts', 'proxy-watch.ts', 'server.ts'],
  },
  {
    folder: 'probe',
    what: '`kube-proxy test`: what is dialled from where, what has to come of it, what failures have in common; the probe pods',
    imports: ['lib', 'kube'],
    effects: ['dial.ts', 'serve.ts', 'session.ts', 'api.ts', 'cluster.ts', 'clients.ts', 'run-test.ts'],
  },
  {
    folder: 'sandbox',
    what: 'a miniature cluster: network namespaces, an API server, controllers, pods; loaded on demand',
    imports: [
      'bpf',
      'lib',
      'system',
      'conntrack',
      'links',
      'kube',
      'model',
      'modes',
      'serve',
      'diagnose',
      'ui',
      'probe',
    ],
    effects: 'all',
  },
  {
    folder: 'cli',
    what: 'flags, help, commands',
    imports: ['lib', 'system', 'config', 'flows', 'modes', 'serve', 'compose', 'diagnose', 'probe', 'sandbox', 'ui'],
    effects: 'all',
  },
  {
    folder: 'kubectl',
    what: '`kubectl kubeproxy`: asks the proxy of each node through the API server; a program of its own',
    imports: ['lib', 'kube', 'diagnose'],
    effects: ['main.ts', 'commands.ts', 'cluster.ts', 'debug-pod.ts', 'sysdump.ts'],
  },
]

/** Stricter rules for parts of folders. */
export const rules: readonly { readonly inside: RegExp; readonly never: RegExp; readonly why: string }[] = [
  {
    inside: /^src\/model\//,
    never: /^src\/kube\/(?!types\.ts)/,
    why: 'the model knows types of objects, not where they come from',
  },
  {
    inside: /^src\/modes\/(\w+)\//,
    never:
      /^src\/modes\/(?!$1\/|advise-on-tables\.ts|contract\.ts|programmer\.ts|dry-run\.ts|script-for-table\.ts|traffic\.ts)/,
    why: 'modes do not import each other',
  },
  {
    inside: /^src\/(modes\/\w+|table-sync)\/plan\//,
    never: /^src\/(system|metrics|config)\/|\/(driver|watch|probe|programmer|machine|mode)\.ts$/,
    why: 'plans do no I/O',
  },
  {
    inside: /^src\/(?!modes\/|cli\/)/,
    never: /^src\/modes\/(?!contract\.ts|all\.ts|programmer\.ts|dry-run\.ts)/,
    why: 'other folders reach a mode through its descriptor',
  },
  {
    inside: /^src\//,
    never: /^packages\/sandbox\//,
    why: 'the program does not import the sandbox',
  },
  {
    inside: /^src\//,
    never: /^node:http$/,
    why: 'an import of node:http loads WebSocket and fetch; use src/lib/http.ts',
  },
]
