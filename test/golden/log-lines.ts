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
    'Cannot count connections',
    'Services with least connections get endpoints at random; `err` says why. It needs CAP_NET_ADMIN and the connection tracker, as the rules do.',
  ),
  error(
    'Failed to list',
    'The API server did not answer, or not as it should; `err` has its answer. The proxy retries after `retryInMs`; rules stay. With `Forbidden`: compare the role with `deploy/base/rbac.yaml`.',
  ),
  error('Failed to watch', 'The same for a watch.'),
  error(
    'Sync failed',
    'The kernel refused a change of one IP family. The proxy retries with back-off; `/healthz` turns to 503 while it does not succeed.',
  ),
  error(
    'Cannot program a service: iptables refuses its rules. All other services are programmed',
    'An Event `FailedToProgramService` names it as well. Usually it needs something that this kernel lacks.',
  ),
  error(
    'Cannot program all rules at once, looking for the service that is in the way',
    'The line above follows, or the reason why nothing can be programmed.',
  ),
  error(
    'Cannot give back kernel settings of another mode',
    'A setting that another mode made stays; the line names the mode, and `err` says why. The mode in force is not touched by it.',
  ),
  error(
    'Cannot listen for a node port on localhost, trying again',
    'nftables mode, with the feature gate `KubeProxyNFTablesLocalhostNodePorts`: `reason` says why, mostly that another program has the port. The node port is open everywhere else. The proxy retries every 5 s and logs this once.',
  ),
  error('Cannot serve a service port: its clients are refused', 'userspace mode: no port is free.'),
  error(
    'Cannot open listeners, so clients of their services are refused: raise the limit of open files (LimitNOFILE, ulimit -n)',
    'userspace mode: `listeners` of them, `first` is the service port of one, `limit` is the limit. Logged once, and again when there are twice as many.',
  ),
  info(
    'All listeners are open: there are file descriptors for them again',
    'userspace mode: the fault of the line above has ended.',
  ),
  error(
    'Cannot restore rules that another program changed',
    'The proxy retries. The usual reason: two proxies on one node.',
  ),
  error(
    'Cannot listen',
    'A port of the proxy, or the health check node port of a Service, is taken; `err` has the address. The proxy retries; an Event says so, too.',
  ),
  error(
    'Cannot give back kernel settings of another mode',
    '`--init-only`: what `mode` had changed stays; `err` names it. The proxy runs all the same.',
  ),
  error(
    'Sockets cannot choose endpoints, the rules do without',
    '`--socket-balancing`: `err` says what is missing: a cgroup, a right, a feature of the kernel. The rules serve all connections; the proxy retries every minute, and logs this again when the reason changes.',
  ),
  warning(
    'Sockets do not choose endpoints: the mode has its own way to choose',
    '`--socket-balancing`, and another mode is used in place of the chosen one.',
  ),
  info('Sockets choose the endpoints of Services', '`--socket-balancing` is in force for processes of `cgroup`.'),
  error(
    'Control socket failed',
    'The proxy serves; `explain`, `doctor` and `top` cannot reach it until it is restarted.',
  ),
  error(
    'Cannot answer at the control socket',
    'A fault of the program; the client gets the error, and the proxy goes on.',
  ),
  error(
    'Cannot count traffic for metrics',
    '`--traffic-metrics`: the mode or the kernel cannot, `err` says why. The metrics are missing; everything else works.',
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
    'There is no Node of this name yet, or it has no addresses, or, with detectLocalMode NodeCIDR, no podCIDRs. Earlier rules stay meanwhile, and `/healthz` says 503. After 30 s the proxy starts without addresses; after five minutes without podCIDRs the program ends, as kube-proxy does.',
  ),
  error(
    'Going on without: ...',
    'For 30 s there was no such Node, or it had no addresses: `--hostname-override` may be wrong. Until there are some, 127.0.0.1 counts as the address of the node, and nodePortAddresses `primary` opens node ports on all addresses. `--bind-address` sets the address.',
  ),
  warning(
    'The Node has no ... any more; what was known stays in force until it has',
    'Somebody recreated the Node object, or emptied it. kube-proxy would end here.',
  ),
  error(
    'The Node object was deleted; what is known of it stays in force until it is back',
    'Perhaps the node was removed from the cluster while the proxy runs.',
  ),
  error(
    'Cannot read the addresses of this machine; those known before stay',
    'Node ports on new addresses are not open until it succeeds.',
  ),
  error(
    'Cannot remove everything that the mode left behind',
    'After a change of the mode, or with `--cleanup`; the line names what is left; remove it by hand.',
  ),
  error(
    'Cannot give back kernel settings of another mode',
    '`--init-only`: `route_localnet` may stay on after the iptables mode; the rule that makes it safe stays with it.',
  ),
  error('Cannot look after backends that are to go', 'ipvs mode: draining backends stay until it succeeds.'),
  error(
    'Cannot look whether another program changed virtual servers',
    'ipvs mode: foreign changes are repaired later.',
  ),
  error(
    'Cannot look after the rules of iptables for now, trying again',
    'iptables mode: foreign changes are repaired later.',
  ),
  error(
    'Cannot close all that the previous configuration had opened',
    'After a changed configuration file; the new one is in force.',
  ),
  error('Cannot answer a request', 'A fault of this program at one of its ports: please report it.'),
  error('Cannot read ...; what it said before stays', '`--manifests`: a file cannot be read.'),
  error(
    'Cannot use ...; what it said before stays',
    '`--manifests`: a file has objects with mistakes; the lines before it say where.',
  ),
  warning(
    'Cannot record an Event for now',
    'Nothing else depends on Events. The proxy tries each twelve times, 10 s apart; `kubeproxyts_events_total` counts outcomes. With 403: compare the role with `deploy/base/rbac.yaml`. Logged once in ten minutes at most.',
  ),
  error('Unexpected error', 'A fault of this program: please report it, with the stack that `-v=4` shows.'),
  error(
    'The rules are in force; something that follows them failed',
    '`subscriber` says what, `err` why. The proxy retries after `againInMs`; `kubeproxyts_subscriber_behind` is 1 until it succeeds. With `udp_flows` and `affinity`, clients of a removed endpoint may go on sending to it until then. One line a minute at most.',
  ),
  error(
    'Another program keeps changing our rules; does another proxy run on this node?',
    'The proxy restores them more slowly from now on. `kube-proxy check` names other proxies.',
  ),
  error(
    'Control socket failed',
    'The proxy serves; `explain`, `doctor` and `top` cannot reach it until it is restarted.',
  ),
  error('Cannot answer at the control socket', 'A fault of this program: please report it.'),
  error('Cannot remove the table that counts', 'With `--cleanup`: try `nft delete table ip kube-proxy-counters`.'),
  error('Cannot remove the retry table', 'The table may stay until `--cleanup`; it has no effect 6 s after the end.'),
  error(
    'Cannot give back kernel settings of another mode',
    'After a change of the mode: a setting stays as the old mode left it.',
  ),
  warning('The retry table is built again', 'Another program changed or removed it.'),
  warning(
    'A backend is ejected: it does not answer',
    'New connections go to other pods for a while; [dead pods](../guides/dead-pods.md).',
  ),
  error(
    'Connections whose backend does not answer may not be tried again',
    'The proxy could not read what the kernel reports about them; everything else works.',
  ),
  warning(
    'Cannot be asked over the control socket',
    'The proxy cannot write to its folder. It serves; `explain`, `doctor` and `top` cannot reach it.',
  ),
  warning(
    'The process that had taken over is gone; serving again',
    'userspace mode, during an upgrade: the new process ended before it was ready.',
  ),
  warning(
    'Cannot be asked over the control socket',
    '`reason` says why: another proxy has it, or the proxy cannot write to the folder. It retries every second; everything else works. `--control-socket=none` turns the socket off.',
  ),
  warning(
    'Cannot change a kernel setting, going on with what it is',
    'In the DaemonSet the init container does it; elsewhere it takes root and a writable `/proc/sys`.',
  ),
  warning(
    'Cannot read credentials file, keeping its last content',
    'A token or a certificate is being rotated; the proxy uses the old one as long as the API server accepts it.',
  ),
  warning(
    'Restored rules that another program had changed',
    'Now and then: somebody reloaded a firewall. Again and again: look for a second proxy. `kubeproxyts_heals_total` counts it.',
  ),
  warning(
    'The API server is reached over plain http: credentials are not sent, requests are anonymous',
    'The kubeconfig, or `--master`, has a URL with `http:`.',
  ),
  warning(
    'A system call took very long, and nobody was answered meanwhile',
    'More than a second in the kernel: `call` names it, and `tookMs` says how long. Please report it, with what had changed.',
  ),
  warning(
    'The program was busy with one thing for very long, and nobody was answered meanwhile',
    'The same where no single call explains it; `longestCall` is the longest. On a node that is short of CPU, the proxy may have waited for a processor.',
  ),
  warning(
    'Still waiting for the xtables lock',
    'Another program has held `/run/xtables.lock` for a while; `kubeproxyts_iptables_lock_waits_total` counts it.',
  ),
  warning(
    'Left a chain that rules of another program use',
    'iptables: the chain is empty; the proxy deletes it when those rules are gone.',
  ),
  warning(
    'Cannot prepare proxy mode iptables',
    '`--init-only`: modules or settings of this mode are missing. The mode reports later whether it can run.',
  ),
  warning(
    'Cannot prepare proxy mode ipvs: this kernel has no IPVS (module ip_vs)',
    'The same for ipvs; another mode will be used.',
  ),
  warning(
    'A Service does not get the scheduler that it asks for',
    'ipvs mode: an annotation asks for one that this kernel does not have. It gets that of `--ipvs-scheduler`; load the module, and the next comparison finds it.',
  ),
  warning('Cut off the connections of a removed backend', 'ipvs mode: they were open for longer than it drains.'),
  warning(
    'Few connections can be proxied: each takes two open files',
    'userspace mode: raise the limit of open files.',
  ),
  warning('Ending with open connections', 'userspace mode: they did not end within the time for draining.'),
  warning('net.ipv4.ip_forward is 0: ...', '`--manifests`: the kernel forwards nothing to other machines.'),
  info('Version info', 'The first line: version, commit, Node.'),
  info('Starting', 'The mode in force, the node and the IP families.'),
  info('Neither kubeconfig file nor master URL was specified, falling back to in-cluster config', 'Normal in a pod.'),
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
    'Starting again with the changed configuration file, the rules stay meanwhile',
    'The change needs a new start within the process.',
  ),
  info('Removed nftables table', 'Of another mode, or with `--cleanup`.'),
  info('Removed rules of iptables', 'The same.'),
  info('Removed virtual servers', 'The same.'),
  info('Waiting for connections to end', 'userspace mode: SIGTERM came, and connections drain.'),
  info('Ending, the rules stay', 'SIGTERM, in the other modes.'),
  info('Ending, connections are carried to their end', 'SIGTERM, in the userspace mode.'),
  info(
    'New connections go by rules of another mode until a proxy is back',
    'userspace mode: SIGTERM came, and the kernel serves new clients by rules of the nftables mode. The next start removes these.',
  ),
  error(
    'Cannot leave services to the kernel: new connections get no answer until a proxy is back',
    'The kernel refused the rules of the line above; `err` says why.',
  ),
  info(
    'Counting traffic, because it is asked for',
    '`kube-proxy top`, or another client of the control socket, asked for it.',
  ),
  info('Counting traffic no longer', 'The last client has gone.'),
  info('Writing the flow log', '`--flow-log` is on: the file, or the URL of the collector.'),
  warning(
    'Cannot write the flow log, trying again',
    'The file, or the collector, does not take it; `reason` says why. The last 5,000 records wait, older ones are counted as left out.',
  ),
  info('Can write the flow log again', 'After the line above.'),
  error(
    'Cannot write the flow log',
    'The kernel does not report connections; `err` says why. The proxy serves without the log. Start it again when the cause is gone.',
  ),
  info('Listening at last', 'After `Cannot listen`: the port is free now.'),
  info('Removed sets of ipset', 'The same, of an ipvs mode.'),
  info('Removed what kube-proxy does not use', 'On the way back to kube-proxy, or to an older version.'),
  info('Initialised, ending because of --init-only', 'The init container of the DaemonSet.'),
  info('Wrote configuration', '`--write-config-to`.'),
  warning(
    'Another process of this program has taken over; it has the rules, and this one lets its connections end',
    'userspace mode: an upgrade that started the new process first, or two proxies by mistake. Stop this one.',
  ),
  warning(
    'The process that had taken over is gone; serving again',
    'userspace mode: the process of the line above ended. Its own log says why.',
  ),
]
