// Every kind of finding: its level, when it comes, and what to do. docs/reference/check.md is made of this table.

/** `problem`: the proxy cannot run, or cannot serve. `warning`: it runs, but perhaps not as meant. `note`: good to know. */
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
  /** When it comes, for the documentation. */
  readonly when: string
  /** What to do, where the finding itself does not say. */
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
    when: 'A flag or a field does nothing, is unknown, or is about to go.',
    todo: 'take it out, or correct its name',
  },
  'config-different': {
    about: 'configuration',
    level: 'note',
    when: 'The configuration says something that this program treats otherwise than kube-proxy.',
  },
  'external-ips-end': {
    about: 'configuration',
    level: 'note',
    when: 'The feature gate AllowServiceExternalIPs is not off. Kubernetes 1.40 turns it off unless it is set, and 1.43 ends external IPs.',
  },
  'kernel-ok': { about: 'kernel', level: 'ok', when: 'The kernel is recent enough.' },
  'kernel-old': {
    about: 'kernel',
    level: 'warning',
    when: 'The kernel is older than 5.13, on which nothing was tried.',
    todo: 'boot a newer kernel, or try the mode on a node that does not matter first',
  },
  'rights-ok': { about: 'rights', level: 'ok', when: 'CAP_NET_ADMIN is there.' },
  'rights-missing': {
    about: 'rights',
    level: 'problem',
    when: 'CAP_NET_ADMIN is missing: no mode can program the kernel.',
    todo: 'run it as root, or with CAP_NET_ADMIN; in a pod: hostNetwork, and capabilities.add: [NET_ADMIN] or privileged',
  },
  'mode-ok': { about: 'modes', level: 'ok', when: 'The mode that was asked for can run.' },
  'mode-stands-in': {
    about: 'modes',
    level: 'warning',
    when: 'The mode that was asked for cannot run, and another stands in.',
  },
  'mode-impossible': {
    about: 'modes',
    level: 'problem',
    when: 'The mode that was asked for cannot run, and none stands in (--strict-proxy-mode, or the stand-in cannot run either).',
  },
  'mode-odd': {
    about: 'modes',
    level: 'warning',
    when: 'The mode that would run has something to say about this machine.',
  },
  'mode-default': {
    about: 'modes',
    level: 'warning',
    when: 'No mode is configured. The start says so in an Event, too.',
    todo: 'set mode in the file, or --proxy-mode: iptables keeps what is, nftables is the default from Kubernetes 1.40 on',
  },
  'mode-ends': {
    about: 'modes',
    level: 'note',
    when: "The mode is ipvs, which kube-proxy 1.40 does not start without its feature gate, and which 1.43 does not have. kube-proxy says so in the Event `IPVSDeprecation`; this program's own ipvs mode does not end.",
  },
  'mode-possible': { about: 'modes', level: 'note', when: 'Another mode that could run.' },
  'mode-not-possible': { about: 'modes', level: 'note', when: 'Another mode that could not run, and why.' },
  'conntrack-ok': { about: 'conntrack', level: 'ok', when: 'There is room for more connections.' },
  'conntrack-full': {
    about: 'conntrack',
    level: 'warning',
    when: 'More than four fifths of the table of connections are used. When it is full, new connections are dropped.',
    todo: 'raise conntrack.maxPerCore or conntrack.min',
  },
  'conntrack-not-loaded': {
    about: 'conntrack',
    level: 'note',
    when: 'Connections are not tracked yet; the first rule that needs it makes the kernel load it.',
  },
  'conntrack-missing': {
    about: 'conntrack',
    level: 'problem',
    when: 'The kernel cannot track connections, which address translation needs.',
    todo: 'boot a kernel with CONFIG_NF_CONNTRACK, or install its modules',
  },
  'settings-ok': { about: 'settings', level: 'ok', when: 'All settings are as the configuration wants them.' },
  'setting-changes': { about: 'settings', level: 'note', when: 'A setting that the start is going to change.' },
  'setting-stays': {
    about: 'settings',
    level: 'warning',
    when: 'A setting that the start would change and cannot. It goes on with what there is; kube-proxy would end.',
    todo: 'set it on the host, or run --init-only in a privileged init container, or set the field to 0 to leave it alone',
  },
  'others-none': {
    about: 'others',
    level: 'ok',
    when: 'No other proxy runs, no rules of one are there, and the ports are free.',
  },
  'other-process': {
    about: 'others',
    level: 'warning',
    when: 'A process called kube-proxy runs in this network namespace.',
    todo: 'stop it before this one starts: two proxies undo each other. Its rules stay and go on working meanwhile',
  },
  'other-rules': {
    about: 'others',
    level: 'note',
    when: 'Rules of a proxy are in the kernel. Those of the mode that would run are taken over, others are removed once the new ones are in place.',
  },
  'port-taken': {
    about: 'others',
    level: 'warning',
    when: 'Another program listens on the health or metrics port. The proxy works without, and tries again every few seconds.',
    todo: 'stop that program (ss -ltnp shows it), or change healthzBindAddress or metricsBindAddress',
  },
  'port-taken-hard': {
    about: 'others',
    level: 'problem',
    when: 'The same with bindAddressHardFail: the proxy would end.',
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
    todo: 'renew the token or the certificate in the kubeconfig; also see whether the clocks agree',
  },
  'api-forbidden': {
    about: 'api',
    level: 'problem',
    when: 'The API server knows who asks and does not allow it.',
    todo: 'bind the ClusterRole system:node-proxier to this user or service account',
  },
  'api-failed': {
    about: 'api',
    level: 'problem',
    when: 'The API server answers with an error to a list or a watch.',
    todo: 'look at what it says; the proxy would try again and again',
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
    when: 'ServiceCIDRs are not served or not allowed. Without them, addresses of the service range that no Service has are not refused.',
  },
  'api-odd': {
    about: 'api',
    level: 'warning',
    when: 'Something about the access to the API server is odd, such as credentials that are not sent over plain http.',
    todo: 'correct the kubeconfig',
  },
  'clock-ok': { about: 'clock', level: 'ok', when: 'The clock agrees with the API server to within ten seconds.' },
  'clock-off': {
    about: 'clock',
    level: 'warning',
    when: 'The clock differs from that of the API server by more than ten seconds. Tokens and certificates may be refused, and latencies in metrics are wrong.',
    todo: 'see that chrony, ntpd or systemd-timesyncd runs on both',
  },
  'clock-unknown': { about: 'clock', level: 'note', when: 'The API server did not tell its time.' },
  'node-ok': { about: 'node', level: 'ok', when: 'The Node exists, and its addresses are here.' },
  'node-missing': {
    about: 'node',
    level: 'warning',
    when: 'There is no Node of this name. The proxy would take every endpoint for one of another node: traffic policies Local drop everything.',
    todo: 'set --hostname-override (hostnameOverride) to the name in kubectl get nodes',
  },
  'node-unknown': { about: 'node', level: 'note', when: 'The API server could not be asked about the Node.' },
  'node-elsewhere': {
    about: 'node',
    level: 'warning',
    when: 'None of the addresses of the Node is on this machine.',
    todo: 'see whether the name is that of another node; with nodePortAddresses primary, node ports would be closed',
  },
  'node-odd': {
    about: 'node',
    level: 'warning',
    when: 'The configuration works on this node, but perhaps not as meant.',
    todo: 'see the field that it names in docs/reference/configuration.md',
  },
  'node-wrong': {
    about: 'node',
    level: 'problem',
    when: 'The configuration cannot work on this node.',
    todo: 'correct the field that it names; docs/reference/configuration.md has every field',
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
