// The lines of the log that matter: docs/reference/log.md. A test compares them with the source.

export interface LogLine {
  readonly severity: 'error' | 'warning' | 'info'
  /** As it is in the source; `...` stands for what differs. */
  readonly text: string
  /** What it means, and what to do. */
  readonly means: string
}

const error = (text: string, means: string): LogLine => ({ severity: 'error', text, means })
const warning = (text: string, means: string): LogLine => ({ severity: 'warning', text, means })
const info = (text: string, means: string): LogLine => ({ severity: 'info', text, means })

export const logLines: readonly LogLine[] = [
  error('Error running kube-proxy', 'The program ends with status 1. The error names what cannot be done, and why.'),
  error(
    'Failed to list',
    'The API server did not answer, or not as it should; `err` has its answer. It is tried again after `retryInMs`, rules stay. With `Forbidden`: compare the role with `deploy/base/rbac.yaml`.',
  ),
  error('Failed to watch', 'The same for a watch that cannot be opened.'),
  error(
    'Sync failed',
    'The kernel refused a change of one IP family. It is tried again, more and more slowly; `/healthz` turns to 503 when it does not succeed.',
  ),
  error(
    'Cannot program a service: iptables refuses its rules. All other services are programmed',
    'An Event `FailedToProgramService` names it as well. Usually something about it that this kernel does not have.',
  ),
  error(
    'Cannot program all rules at once, looking for the service that is in the way',
    'The line before it follows, or the reason why nothing can be programmed.',
  ),
  error(
    'Cannot give back kernel settings of another mode',
    'A setting that another mode made stays; the line names the mode, and `err` says why. The mode in force is not touched by it.',
  ),
  error(
    'Cannot listen for a node port on localhost, trying again',
    'nftables mode, with the feature gate `KubeProxyNFTablesLocalhostNodePorts`: `reason` says why, mostly that another program has the port. The node port is open everywhere else. Tried every 5 s, said once.',
  ),
  error('Cannot serve a service port: its clients are refused', 'userspace mode: no port is free.'),
  error(
    'Cannot open doors, so clients of their services are refused: raise the limit of open files (LimitNOFILE, ulimit -n)',
    'userspace mode: `doors` of them, `first` is the service port of one, `limit` is the limit. Said once, and again when there are twice as many.',
  ),
  info('All doors are open: there are file descriptors for them again', 'userspace mode: the line above is over.'),
  error(
    'Cannot restore rules that another program changed',
    'It is tried again. Two proxies on one node are the usual reason.',
  ),
  error(
    'Cannot listen',
    'A port of the proxy, or the health check node port of a Service, is taken; `err` has the address. It is tried again; an Event tells it, too.',
  ),
  error(
    'Cannot give back kernel settings of another mode',
    '`--init-only`: what `mode` had changed stays; `err` names it. The proxy runs all the same.',
  ),
  error(
    'Cannot choose endpoints at connect(), the rules do without',
    '`--choose-at-connect`: `err` says what is missing - a cgroup, a right, something of the kernel. Services are served by the rules alone; it is tried again every minute, and the line comes again when the reason is another.',
  ),
  warning(
    'Endpoints are not chosen at connect(): the mode has its own way to choose',
    '`--choose-at-connect` where another mode stands in for the one that was asked for.',
  ),
  info(
    'Endpoints of cluster IPs are chosen at connect()',
    '`--choose-at-connect` is in force for processes of `cgroup`.',
  ),
  error('Control socket failed', 'The proxy goes on; it cannot be asked until it is started again.'),
  error(
    'Cannot answer at the control socket',
    'A fault of the program; the client gets the error, and the proxy goes on.',
  ),
  error(
    'Cannot count traffic for metrics',
    '`--traffic-metrics`: the mode or the kernel cannot, `err` says why. The metrics are not there; all else goes on.',
  ),
  error('Cannot read the counts of traffic', 'The metrics of `--traffic-metrics` stay as they were.'),
  error(
    'Cannot end counting traffic',
    'The table `kube-proxy-counters` may be left; `nft delete table ip kube-proxy-counters` removes it, and so does the next start.',
  ),
  error(
    'Cannot use the changed configuration file; the running configuration stays',
    '`err` names the field. The metric `kubeproxyts_config_reloads_total` counts it as rejected.',
  ),
  info(
    'Waiting before the first rule: ...',
    'There is no Node of this name yet, or it has no addresses, or, with detectLocalMode NodeCIDR, no podCIDRs. The rules of before stay meanwhile, and `/healthz` says 503. After 30 s it goes on without addresses; after five minutes without podCIDRs the program ends, as kube-proxy does.',
  ),
  error(
    'Going on without: ...',
    'There is no such Node, or it has no addresses, since 30 s: `--hostname-override` may be wrong. Until there are some, the address of this node is taken for 127.0.0.1, and nodePortAddresses `primary` opens node ports on all addresses. `--bind-address` sets the address.',
  ),
  warning(
    'The Node has no ... any more; what was known stays in force until it has',
    'The Node object was made anew, or another program emptied it. kube-proxy would end, and wait as at a start.',
  ),
  error(
    'The Node object was deleted; what is known of it stays in force until it is back',
    'Perhaps the node was taken out of the cluster while the proxy runs.',
  ),
  error(
    'Cannot read the addresses of this machine; those known before stay',
    'Node ports on new addresses are not open until it succeeds.',
  ),
  error(
    'Cannot remove everything that the mode left behind',
    'After a change of the mode, or with `--cleanup`; what is left is named, and can be removed by hand.',
  ),
  error(
    'Cannot give back kernel settings of another mode',
    '`--init-only`: `route_localnet` may stay on after the iptables mode; the rule that makes it safe stays with it.',
  ),
  error('Cannot look after backends that are to go', 'ipvs mode: draining backends stay until it succeeds.'),
  error('Cannot look whether another program changed virtual servers', 'ipvs mode: foreign changes are mended later.'),
  error(
    'Cannot look after the rules of iptables for now, trying again',
    'iptables mode: foreign changes are mended later.',
  ),
  error(
    'Cannot close all that the previous configuration had opened',
    'After a changed configuration file; the new one is in force.',
  ),
  error('Cannot answer a request', 'A fault of this program at one of its ports: please report it.'),
  error('Cannot read ...; what it said before stays', '`--manifests`: a file cannot be read.'),
  error(
    'Cannot use ...; what it said before stays',
    '`--manifests`: a file has objects that are wrong; the lines before it say where.',
  ),
  warning(
    'Cannot record an Event for now',
    'Events are for people, nothing else waits for them. Each is tried twelve times, 10 s apart; `kubeproxyts_events_total` counts what became of them. 403: the rights of `deploy/` let the proxy create Events. Once in ten minutes at most.',
  ),
  error('Unexpected error', 'A fault of this program: please report it, with the stack that `-v=4` shows.'),
  error(
    'The rules are in force; something that follows them failed',
    '`follower` says what, `err` why; it is tried again by itself, `againInMs` says when, and `kubeproxyts_follower_behind` is 1 until it is done. With `udp_flows` and `affinity`, clients of a removed endpoint may go on sending to it until then. One line a minute at most.',
  ),
  error(
    'Another program keeps changing our rules; does another proxy run on this node?',
    'They are restored more slowly from now on. `kube-proxy check` names other proxies.',
  ),
  error('Control socket failed', 'The proxy serves; `kube-proxy explain` and `doctor` cannot ask it.'),
  error('Cannot answer at the control socket', 'A fault of this program: please report it.'),
  error(
    'Cannot remove the table that counts',
    'With `--cleanup`: `nft delete table ip kube-proxy-counters` may do it.',
  ),
  error('Cannot remove the table of retries', 'nftables mode: what it did to dead pods stays until `--cleanup`.'),
  error(
    'Cannot give back kernel settings of another mode',
    'After a change of the mode: a setting stays as the mode before had it.',
  ),
  warning('The table of retries is made anew', 'nftables mode: another program had changed or removed it.'),
  warning(
    'A backend is ejected: it does not answer',
    'New connections go to other pods for a while; [dead pods](../guides/dead-pods.md).',
  ),
  error(
    'Connections whose backend does not answer may not be tried again',
    'What the kernel tells of them could not be used this time; everything else is served.',
  ),
  warning(
    'Cannot be asked over the control socket',
    'Its folder cannot be written to. The proxy serves; `kube-proxy explain` and `doctor` cannot ask it.',
  ),
  warning(
    'The process that had taken over is gone; serving again',
    'userspace mode, during an upgrade: the new process ended before it was ready.',
  ),
  warning(
    'Cannot be asked over the control socket',
    '`reason` says why: another proxy has it, or the folder cannot be written to. It is tried again every second; all else works. `--control-socket=none` if that is wanted.',
  ),
  warning(
    'Cannot change a kernel setting, going on with what it is',
    'In the DaemonSet the init container does it; elsewhere it takes root, and a `/proc/sys` that can be written.',
  ),
  warning(
    'Cannot read credentials file, keeping its last content',
    'A token or a certificate that is rotated; the old one is used as long as the API server takes it.',
  ),
  warning(
    'Restored rules that another program had changed',
    'Now and then: a firewall was loaded anew. Again and again: look for a second proxy. `kubeproxyts_heals_total` counts it.',
  ),
  warning(
    'The API server is reached over plain http: credentials are not sent, requests are anonymous',
    'The kubeconfig, or `--master`, has a URL with `http:`.',
  ),
  warning(
    'A system call took very long, and nobody was answered meanwhile',
    'More than a second in the kernel: `call` names it, and `tookMs` says how long. Please report it, with what had changed by then.',
  ),
  warning(
    'The program was busy with one thing for very long, and nobody was answered meanwhile',
    'The same where no call alone explains it; `longestCall` is the longest there was. On a node that is short of CPU it may have had to wait for its turn.',
  ),
  warning(
    'Still waiting for the xtables lock',
    'Another program has held `/run/xtables.lock` for a while; `kubeproxyts_iptables_lock_waits_total` counts it.',
  ),
  warning(
    'Left a chain that rules of another program use',
    'iptables: the chain is empty, and goes when those rules have gone.',
  ),
  warning(
    'Cannot prepare proxy mode iptables',
    '`--init-only`: modules or settings of this mode are missing. The mode itself says later whether it can do without.',
  ),
  warning(
    'Cannot prepare proxy mode ipvs: this kernel has no IPVS (module ip_vs)',
    'The same for ipvs; another mode will stand in.',
  ),
  warning('Cut off the connections of a removed backend', 'ipvs mode: they were open for longer than it drains.'),
  warning(
    'Few connections can be proxied: each takes two open files',
    'userspace mode: raise the limit of open files.',
  ),
  warning('Ending with open connections', 'userspace mode: they did not end within the time for draining.'),
  warning('net.ipv4.ip_forward is 0: ...', '`--manifests`: nothing is passed on to other machines.'),
  info('Version info', 'The first line: version, commit, Node.'),
  info('Starting', 'The mode in force, the node and the IP families.'),
  info(
    'Neither kubeconfig file nor master URL was specified, falling back to in-cluster config',
    'In a pod this is as it should be.',
  ),
  info('Using iptables', 'Which of the two kinds, and why.'),
  info('Changed a kernel setting', 'With its value before and after.'),
  info(
    'API server has no EndpointSlices (discovery.k8s.io/v1), watching Endpoints instead',
    'A cluster from before 1.21.',
  ),
  info('API server has EndpointSlices now', 'It was upgraded while the proxy runs.'),
  info(
    'Listing again, the API server no longer has our version',
    'After a long absence, or a restored etcd. Nothing is lost.',
  ),
  info('Applied the changed configuration file', 'Without a restart; `/configz` shows it.'),
  info(
    'Starting anew with the changed configuration file, the rules stay meanwhile',
    'What changed takes a new start within the process.',
  ),
  info('Removed nftables table', 'Of another mode, or with `--cleanup`.'),
  info('Removed rules of iptables', 'The same.'),
  info('Removed virtual servers', 'The same.'),
  info('Waiting for connections to end', 'userspace mode: SIGTERM came, and connections drain.'),
  info('Ending, the rules stay', 'SIGTERM, in the other modes.'),
  info('Ending, connections are carried to their end', 'SIGTERM, in the userspace mode.'),
  info(
    'New connections go by rules of another mode until a proxy is back',
    'userspace mode: SIGTERM came, and the kernel serves clients without this process, by rules of the nftables mode. The next start takes these away.',
  ),
  error(
    'Cannot leave services to the kernel: new connections get no answer until a proxy is back',
    'The rules of the line above could not be made; `err` says why.',
  ),
  info('Counting traffic, because it is asked for', '`kube-proxy top`, or another asker at the control socket, looks.'),
  info('Counting traffic no longer', 'The last asker has gone.'),
  info('Listening at last', 'After `Cannot listen`: the port is free now.'),
  info('Removed sets of ipset', 'The same, of an ipvs mode.'),
  info('Removed what kube-proxy does not use', 'On the way back to kube-proxy, or to an older version.'),
  info('Initialised, ending because of --init-only', 'The init container of the DaemonSet.'),
  info('Wrote configuration', '`--write-config-to`.'),
  warning(
    'Another process of this program has taken over; it has the rules, and this one lets its connections end',
    'userspace mode: an upgrade that started the new process first, or two proxies by mistake. This one is to be stopped.',
  ),
  warning(
    'The process that had taken over is gone; serving again',
    'userspace mode: the process of the line above ended. Its own log says why.',
  ),
]
