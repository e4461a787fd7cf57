// Every kind of finding: its level, when it is reported, and what to do. docs/reference/check.md is made of this table.

/** `problem`: the proxy cannot run, or cannot serve. `warning`: it runs, but perhaps not as intended. `note`: good to know. */
export type Level = 'ok' | 'note' | 'warning' | 'problem'

export const subjects = {
  configuration: 'Configuration',
  kernel: 'Kernel',
  rights: 'Rights',
  modes: 'Modes',
  conntrack: 'Connection tracking',
  settings: 'Kernel settings',
  others: 'Other proxies',
  api: 'API server',
  clock: 'Clock',
  node: 'Node',
} as const

export type Subject = keyof typeof subjects

export interface FindingKind {
  readonly about: Subject
  readonly level: Level
  /** For the documentation. */
  readonly when: string
  /** What to do; absent where each finding has its own. */
  readonly todo?: string
}

function kinds<K extends string>(table: Record<K, FindingKind>): Readonly<Record<K, FindingKind>> {
  return table
}

export const findingKinds = kinds({
  'config-ok': { about: 'configuration', level: 'ok', when: 'Flags and file can be used.' },
  'config-invalid': {
    about: 'configuration',
    level: 'problem',
    when: 'The configuration cannot be used. Nothing else is checked then.',
    todo: 'correct it; docs/reference/configuration.md has every field',
  },
  'config-odd': {
    about: 'configuration',
    level: 'warning',
    when: 'A flag or a field has no effect, is unknown, or is deprecated.',
    todo: 'remove it, or correct its name',
  },
  'config-different': {
    about: 'configuration',
    level: 'note',
    when: 'This program treats a setting differently from kube-proxy.',
  },
  'external-ips-end': {
    about: 'configuration',
    level: 'note',
    when: 'The feature gate AllowServiceExternalIPs is on. Kubernetes 1.40 turns it off unless it is set, and 1.43 removes external IPs.',
  },
  'kernel-ok': { about: 'kernel', level: 'ok', when: 'The kernel is recent enough.' },
  'kernel-old': {
    about: 'kernel',
    level: 'warning',
    when: 'The kernel is older than 5.13, the oldest that was tested.',
    todo: 'boot a newer kernel, or test the mode first on a node that does not matter',
  },
  'rights-ok': { about: 'rights', level: 'ok', when: 'The process has CAP_NET_ADMIN.' },
  'rights-missing': {
    about: 'rights',
    level: 'problem',
    when: 'CAP_NET_ADMIN is missing: no mode can program the kernel.',
    todo: 'run it as root, or with CAP_NET_ADMIN; in a pod: hostNetwork, and capabilities.add: [NET_ADMIN] or privileged',
  },
  'mode-ok': { about: 'modes', level: 'ok', when: 'The configured mode can run.' },
  'mode-stands-in': {
    about: 'modes',
    level: 'warning',
    when: 'The configured mode cannot run, and another runs in its place.',
  },
  'mode-impossible': {
    about: 'modes',
    level: 'problem',
    when: 'The configured mode cannot run, and no other runs in its place (--strict-proxy-mode, or the other cannot run either).',
  },
  'mode-odd': {
    about: 'modes',
    level: 'warning',
    when: 'The mode that would run has a warning about this machine.',
  },
  'mode-default': {
    about: 'modes',
    level: 'warning',
    when: 'No mode is configured. The proxy also reports this in an Event when it starts.',
    todo: 'set mode in the file, or --proxy-mode: iptables keeps the present behaviour, nftables is the default from Kubernetes 1.40 on',
  },
  'mode-ends': {
    about: 'modes',
    level: 'note',
    when: 'The mode is ipvs. kube-proxy 1.40 needs a feature gate for it, and 1.43 no longer has it; kube-proxy says so in the Event `IPVSDeprecation`. The ipvs mode of this program stays.',
  },
  'mode-possible': { about: 'modes', level: 'note', when: 'Another mode that could run.' },
  'mode-not-possible': { about: 'modes', level: 'note', when: 'Another mode that could not run, and why.' },
  'sockets-choose': { about: 'modes', level: 'ok', when: '--socket-balancing is set, and can be in force.' },
  'sockets-cannot-choose': {
    about: 'modes',
    level: 'warning',
    when: '--socket-balancing is set, and the kernel, a right or a cgroup is missing. The rules serve all connections.',
    todo: 'see what it needs in docs/guides/socket-balancing.md, or leave the flag out',
  },
  'conntrack-ok': { about: 'conntrack', level: 'ok', when: 'The table of connections has space.' },
  'conntrack-full': {
    about: 'conntrack',
    level: 'warning',
    when: 'More than four fifths of the table of connections are used. When it is full, new connections are dropped.',
    todo: 'raise conntrack.maxPerCore or conntrack.min',
  },
  'conntrack-not-loaded': {
    about: 'conntrack',
    level: 'note',
    when: 'The kernel does not track connections yet. It starts with the first rule that needs it.',
  },
  'conntrack-missing': {
    about: 'conntrack',
    level: 'problem',
    when: 'The kernel cannot track connections, which address translation needs.',
    todo: 'boot a kernel with CONFIG_NF_CONNTRACK, or install its modules',
  },
  'settings-ok': { about: 'settings', level: 'ok', when: 'All kernel settings have the configured values.' },
  'setting-changes': { about: 'settings', level: 'note', when: 'The proxy will change this setting when it starts.' },
  'setting-stays': {
    about: 'settings',
    level: 'warning',
    when: 'The proxy would change this setting when it starts, but cannot. It continues with the present value; kube-proxy would exit.',
    todo: 'set it on the host, or run --init-only in a privileged init container, or set the field to 0 to leave it alone',
  },
  'others-none': {
    about: 'others',
    level: 'ok',
    when: 'No other proxy runs, the kernel has no rules of one, and the ports are free.',
  },
  'other-process': {
    about: 'others',
    level: 'warning',
    when: 'A process called kube-proxy runs in this network namespace.',
    todo: 'stop it before this one starts: two proxies undo each other. Its rules stay in the kernel and keep working meanwhile',
  },
  'other-rules': {
    about: 'others',
    level: 'note',
    when: 'The kernel has rules of a proxy. The proxy takes over those of its own mode, and removes others when the new rules are in place.',
  },
  'mark-taken': {
    about: 'others',
    level: 'warning',
    when: 'Rules of another program, in nftables or iptables, set the bit of the packet mark with which this proxy marks what it masquerades. What they mark loses its own address, too. CNI plugins, NetworkPolicy controllers and VPNs use marks.',
    todo: 'choose a bit that nobody uses: masqueradeBit in the block of the mode (iptables mode: --iptables-masquerade-bit); or change the other program',
  },
  'port-taken': {
    about: 'others',
    level: 'warning',
    when: 'Another program listens on the health or metrics port. The proxy works without it, and tries again every few seconds.',
    todo: 'stop that program (ss -ltnp shows it), or change healthzBindAddress or metricsBindAddress',
  },
  'port-taken-hard': {
    about: 'others',
    level: 'problem',
    when: 'The same with bindAddressHardFail: the proxy would exit.',
    todo: 'stop that program (ss -ltnp shows it), or change healthzBindAddress or metricsBindAddress',
  },
  'api-ok': { about: 'api', level: 'ok', when: 'Services, EndpointSlices and Nodes can be listed and watched.' },
  'api-files': { about: 'api', level: 'note', when: 'Services come from files (--manifests); no API server is asked.' },
  'api-not-named': {
    about: 'api',
    level: 'warning',
    when: 'No API server was named, and this is no pod: only the machine was looked at.',
    todo: 'name one: --kubeconfig FILE',
  },
  'api-no-access': {
    about: 'api',
    level: 'problem',
    when: 'The kubeconfig, or the service account of the pod, cannot be used.',
    todo: 'name a kubeconfig that exists and is complete: --kubeconfig, or clientConnection.kubeconfig in the file',
  },
  'api-unreachable': {
    about: 'api',
    level: 'problem',
    when: 'The API server does not answer, or its certificate is not accepted.',
    todo: 'compare the server in the kubeconfig with one that works, and try: curl -k SERVER/version',
  },
  'api-unauthorized': {
    about: 'api',
    level: 'problem',
    when: 'The API server does not accept the credentials.',
    todo: 'renew the token or the certificate in the kubeconfig, and compare the clocks',
  },
  'api-forbidden': {
    about: 'api',
    level: 'problem',
    when: 'The API server accepts the credentials but does not allow the request.',
    todo: 'bind the ClusterRole system:node-proxier to this user or service account',
  },
  'api-failed': {
    about: 'api',
    level: 'problem',
    when: 'The API server answers with an error to a list or a watch.',
    todo: 'read the error; the proxy would keep trying',
  },
  'api-no-slices': {
    about: 'api',
    level: 'warning',
    when: 'The API server has no EndpointSlices (older than 1.21): Endpoints are used, without topology hints.',
    todo: 'upgrade the API server',
  },
  'api-no-service-cidrs': {
    about: 'api',
    level: 'note',
    when: 'The API server does not serve or allow ServiceCIDRs. Without them, the proxy does not refuse unused addresses of the service range.',
  },
  'api-odd': {
    about: 'api',
    level: 'warning',
    when: 'The access to the API server has a warning: for example, credentials are not sent over plain http.',
    todo: 'correct the kubeconfig',
  },
  'clock-ok': { about: 'clock', level: 'ok', when: 'The clock agrees with the API server to within ten seconds.' },
  'clock-off': {
    about: 'clock',
    level: 'warning',
    when: 'The clock differs from that of the API server by more than ten seconds. The server may refuse tokens and certificates, and latencies in metrics are wrong.',
    todo: 'make sure that chrony, ntpd or systemd-timesyncd runs on both',
  },
  'clock-unknown': { about: 'clock', level: 'note', when: 'The API server did not send its time.' },
  'node-ok': { about: 'node', level: 'ok', when: 'The Node exists, and this machine has its addresses.' },
  'node-missing': {
    about: 'node',
    level: 'warning',
    when: 'There is no Node of this name. The proxy would treat every endpoint as one of another node, and traffic policies Local would drop everything.',
    todo: 'set --hostname-override (hostnameOverride) to the name in kubectl get nodes',
  },
  'node-unknown': { about: 'node', level: 'note', when: 'The API server could not be asked about the Node.' },
  'node-elsewhere': {
    about: 'node',
    level: 'warning',
    when: 'This machine has none of the addresses of the Node.',
    todo: 'check whether this is the name of another node; with nodePortAddresses primary, node ports would be closed',
  },
  'node-odd': {
    about: 'node',
    level: 'warning',
    when: 'The configuration works on this node, but perhaps not as intended.',
    todo: 'read about the named field in docs/reference/configuration.md',
  },
  'node-wrong': {
    about: 'node',
    level: 'problem',
    when: 'The configuration cannot work on this node.',
    todo: 'correct the named field; docs/reference/configuration.md has every field',
  },
})

export type FindingCode = keyof typeof findingKinds

export interface Finding {
  readonly code: FindingCode
  readonly about: Subject
  readonly level: Level
  readonly message: string
  readonly todo: string | undefined
}

export function finding(
  code: FindingCode,
  message: string,
  todo: string | undefined = findingKinds[code].todo,
): Finding {
  const { about, level } = findingKinds[code]
  return { code, about, level, message, todo }
}
