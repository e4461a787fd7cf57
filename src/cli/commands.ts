// Every command: its options, its help, and the code that it loads. A proxy is none of them: it takes flags alone.

import { leftModes, newModes } from '../diagnose/leave/facts.ts'
import { FRONTEND_KINDS } from '../diagnose/explain/question.ts'
import {
  type Command,
  command,
  type CommandGroup,
  duration,
  oneOf,
  output,
  text,
  toggle,
  wholeNumber,
} from '../lib/command.ts'
import { modeNames } from '../modes/all.ts'
import { scriptReaders, type ScriptReader } from '../modes/dry-run.ts'
import { testSpec } from '../probe/test-spec.ts'
import { loadOptional } from './load-optional.ts'
import { sortKeys, views } from './top-view.ts'

const controlSocket = {
  value: 'PATH',
  help: 'The control socket of the proxy. Default: KUBE_PROXY_CONTROL_SOCKET, else that of this network namespace.',
}
const askedSocket = text(controlSocket.value, controlSocket.help)
const family = oneOf(['4', '6'], 'Only this IP family.')
const textOrJson = (help: string) => output(['text', 'json'], help)

const check = command({
  name: 'check',
  summary: 'whether the proxy can run on this node',
  about:
    'Checks whether this machine and its cluster have what the proxy needs, and changes nothing. Run it on a node before you replace kube-proxy: with the flags, as the user and in the network namespace that the proxy will have.',
  options: {
    from: oneOf(
      leftModes,
      'Instead: what the Services of this cluster lose, gain or do differently when they leave this mode.',
    ),
    to: oneOf(newModes, 'With --from: the mode that they go to.', 'nftables'),
    output: textOrJson('Text, or one JSON object.'),
  },
  proxyFlags: {},
  examples: [
    ['check --config=/var/lib/kube-proxy/config.conf'],
    ['check --kubeconfig=/etc/kubernetes/kube-proxy.conf --proxy-mode=nftables'],
    ['check --from=ipvs --config=/var/lib/kube-proxy/config.conf', 'what would nftables change?'],
  ],
  notes: [
    'Each line is ok, a note, a warning or a PROBLEM. The text behind -> says what to do about it.',
    'Exit status: 0 when the proxy can run here, 1 when a problem prevents that. With --from: 0 when nothing is lost or different, 1 when something is, 2 when there is no answer.',
  ],
  run: async ({ values, given }) => {
    const { runCheckCommand, runLeavingCommand } = await import('./check.ts')
    const { from, to, output } = values
    return from === undefined ? runCheckCommand(output, given) : runLeavingCommand({ from, to }, output, given)
  },
})

const explain = command({
  name: 'explain',
  summary: 'what happens to a connection, and why',
  about:
    'Shows what the proxy does with a connection, and why: the frontend that takes it, the policy, each backend and why it is eligible or not, affinity, masquerading, and the path through the kernel as it is now. Changes nothing.',
  arguments: ['[FROM]', 'TO'],
  options: {
    via: oneOf(FRONTEND_KINDS, 'Which address of the Service is dialled. Default: the one that fits FROM.'),
    family: oneOf(['4', '6'], "Which address of a dual-stack Service. Default: the Service's first."),
    node: text('NAME', 'The node to explain, with --manifests or --kubeconfig.'),
    dump: text(
      'FILE',
      'The rules of a kernel: output of `nft -j list ruleset` or `iptables-save`; - is standard input.',
    ),
    'node-addresses': text('A,B', 'With --dump alone: the addresses of the machine that the dump is from.'),
    kernel: toggle(
      'With --manifests or --kubeconfig: also read the kernel of this machine, whichever kube-proxy wrote it.',
    ),
    send: toggle('Also send a real packet from here, and show what the kernel does with it.'),
    sandbox: text('NAME', 'FROM is a pod of this sandbox; with --send, that pod sends the packet.'),
    output: output(['text', 'json', 'svg', 'mermaid'], 'Text, one JSON object, or a picture.'),
  },
  proxyFlags: {
    manifests: { value: 'PATH', help: 'Read a manifest, a folder of them, or - for standard input, and no kernel.' },
    kubeconfig: {
      value: 'FILE',
      help: 'Ask an API server what a node would do. The proxies are set as the flags here say; without any, as ConfigMap kube-system/kube-proxy says, if it can be read.',
    },
    'control-socket': controlSocket,
  },
  examples: [
    ['explain default/web', 'from the node itself to the cluster IP of a Service'],
    ['explain outside default/web', 'from a client outside to its load balancer or node port'],
    ['explain 10.244.1.7 10.96.0.10:53/udp'],
    ['explain default/web --manifests ./web --proxy-mode nftables', 'from files; no root, no kernel'],
    ['explain client web:http --kubeconfig ~/.kube/config --node node-2', 'what would node-2 do?'],
    ['explain outside 10.96.0.10:53/udp --dump dump.json', 'after: nft -j list ruleset > dump.json'],
  ],
  notes: [
    'FROM is an address, a pod ([NAMESPACE/]NAME), node, or outside. Default: node. TO is [NAMESPACE/]SERVICE[:PORT], ADDRESS:PORT[/udp], or a URL; with /icmp and no port, a ping. PORT is a number or a name.',
    'By default the command asks the proxy that runs on this node and reads the kernel; both need root.',
    'Exit status: 0 when the connection is sent to an endpoint and nothing differs; 2 when it is not sent; 3 when the kernel, or the packet that was sent, does something else than the proxy decided; 1 when there is no answer.',
  ],
  run: async ({ values, words, given }) => {
    const [from, to] = words.length === 2 ? words : ['node', ...words]
    const family = values.family === undefined ? undefined : values.family === '4' ? 4 : 6
    const question = { from: from!, to: to!, via: values.via, family } as const
    return (await import('./explain.ts')).runExplainCommand(question, values, given)
  },
})

const doctor = command({
  name: 'doctor',
  summary: 'why a Service does not answer',
  about:
    'Finds out why a Service does not answer. Works through a list of questions, stops at the first problem, and prints the next command to type. Changes nothing. Run it as root on the node from which the Service does not answer.',
  arguments: ['[NAMESPACE/SERVICE[:PORT]]'],
  options: {
    from: text('FROM', 'The client that gets no answer: an address, a pod, node, or outside.', 'node'),
    via: oneOf(FRONTEND_KINDS, 'Only this kind of address of the Service. Default: all.'),
    send: toggle('Also follow packets to endpoints that do not answer through the kernel, to where they end.'),
    node: text('NAME', 'With --manifests: which node this machine is.'),
    output: textOrJson('Text, or one JSON object.'),
  },
  proxyFlags: {
    kubeconfig: {
      value: 'FILE',
      help: 'An API server, and a user who may list pods: selectors and readiness are examined, too.',
    },
    manifests: {
      value: 'PATH',
      help: 'Another kube-proxy runs here: take Services, EndpointSlices and Nodes from a manifest, a folder, or - for standard input. Flags of the proxy say how it is set.',
    },
    'control-socket': controlSocket,
  },
  examples: [
    ['doctor', 'the node, then every Service, without connecting to any'],
    ['doctor default/web'],
    ['doctor default/web --from outside --kubeconfig ~/.kube/config'],
    ['doctor default/web --via nodePort'],
    ['doctor default/web --send', 'which rule or function of the kernel drops the packets'],
  ],
  notes: [
    'Exit status: 0 when every question has an answer and nothing is wrong; 2 when something is wrong; 3 when nothing was found but a question has no answer (marked ?); 1 when the command cannot run.',
  ],
  run: async ({ values, words, given }) => (await import('./doctor.ts')).runDoctorCommand(words[0], values, given),
})

const plan = command({
  name: 'plan',
  summary: 'what the proxy would change in this kernel',
  about:
    'Prints what the proxy would program on this node, as the difference from what the kernel has now, and changes nothing. Without flags of the proxy, the configuration and the objects are those of the proxy that runs on this node; there should be nothing to do then. With flags, it prints what a proxy with these flags would do.',
  options: {
    mode: oneOf(modeNames, 'The mode whose commands are printed. Default: the configured one.'),
    family,
    limit: wholeNumber('Print at most N commands for each program. (default 100)', { min: 1, max: 999_999_999 }),
    'control-socket': askedSocket,
    output: textOrJson('Text, or one JSON object with all commands.'),
  },
  proxyFlags: {},
  examples: [
    ['plan --mode=nftables', 'what a change of the mode would program'],
    ['plan --config=FILE --manifests=DIR'],
    ['plan --kubeconfig=FILE --hostname-override=NODE'],
  ],
  notes: [
    'The first lines count the commands of every mode; * marks the mode whose commands follow. They are written for nft -f, iptables-restore --noflush, ipvsadm -R and ip -batch. Empty sets that a running proxy keeps for later are listed apart, as leftovers: it removes them when they are many, or with its next full comparison.',
    'Exit status: 0 when there is nothing to do in that mode, 2 when there is, 1 when there is no answer.',
  ],
  run: async ({ values, given }) => (await import('./preview.ts')).runPlanCommand(values, given),
})

const render = command({
  name: 'render',
  summary: 'what a mode would program, as text for nft and others',
  about:
    'Prints what a mode would program on a node whose kernel has nothing yet, as text for nft -f, iptables-restore --noflush, ipvsadm -R and ip -batch. Needs no root, reads no kernel, and changes nothing.',
  options: {
    mode: oneOf(modeNames, 'Default: the configured one.'),
    node: text(
      'NODE',
      'The name of the node, as --hostname-override: its Node object is among the objects. Default: this machine, with its addresses.',
    ),
    for: oneOf(Object.keys(scriptReaders) as ScriptReader[], 'Only the text for this program.'),
    family,
  },
  proxyFlags: {
    manifests: { value: 'PATH', help: 'The objects: a manifest, or a folder of them.' },
    kubeconfig: { value: 'FILE', help: 'The API server that has the objects.' },
  },
  examples: [
    ['render --mode=nftables --manifests=examples/standalone | sudo nft -f -'],
    ['render --mode=ipvs --manifests=DIR --for=ipvsadm | sudo ipvsadm -R'],
  ],
  notes: [
    'With several programs, each part begins with "# for PROGRAM"; --for prints one part without that line. What these programs cannot express is printed on stderr.',
    'Exit status: 0, or 1 on an error.',
  ],
  run: async ({ values, given }) => (await import('./preview.ts')).runRenderCommand(values, given),
})

const top = command({
  name: 'top',
  summary: 'the traffic of the services of this node, live',
  about:
    'Shows the traffic of the services of this node: new connections, packets and bytes per second, packets refused by frontends without endpoints, and ejected backends. The kernel counts only while this command runs.',
  options: {
    view: oneOf(views, 'What a line is.', 'services'),
    sort: oneOf(sortKeys, 'The order of the lines.', 'bytes'),
    filter: text('TEXT', 'Only lines whose name contains this.', ''),
    interval: duration('', { least: '1s', most: '10s', usual: '1s' }),
    count: wholeNumber('Stop after N tables. Default: never.', { min: 1, max: 999_999_999 }),
    'control-socket': askedSocket,
    output: textOrJson('Tables, or one JSON object per line.'),
  },
  notes: [
    'Keys, in a terminal: v view, s sort, / filter (Enter ends it, Escape clears it), q quit. In a pipe, each table is printed below the last. A connection counts when its first packet passes; a packet that is sent again counts again. What counting costs: docs/guides/top.md.',
  ],
  run: async ({ values }) => (await import('./top.ts')).runTopCommand(values),
})

const flows = command({
  name: 'flows',
  summary: 'who connects to the services of this node, live',
  about:
    'Prints the connections through the services of this node as they begin and end: who asked, which frontend, which backend, how it ended, how long it took and how many bytes. The kernel tells of connections only while this command runs, or while --flow-log is on.',
  arguments: ['[[NAMESPACE/]SERVICE]'],
  options: {
    count: wholeNumber('Stop after N lines. Default: never.', { min: 1, max: 999_999_999 }),
    'control-socket': askedSocket,
    output: textOrJson('A line for people, or one JSON object per line.'),
  },
  examples: [['flows', 'of every Service'], ['flows default/web'], ['flows default/web -o json --count 100']],
  notes: [
    'A connection that a Service refuses or drops is none for the kernel: top counts those packets. A UDP connection ends when the kernel forgets it. What is missing, and why, is said on stderr. What it costs: docs/guides/flows.md.',
  ],
  run: async ({ values, words }) => (await import('./flows.ts')).runFlowsCommand(words[0], values),
})

const status = command({
  name: 'status',
  summary: 'how the proxy of this node is, and since when',
  about:
    'Prints what the proxy of this node says of itself: version, mode, since when the kernel holds what was decided, what other programs changed, what the kernel refused, which backends are ejected, and how long the slowest change took.',
  options: {
    'control-socket': askedSocket,
    output: output(['text', 'json', 'all'], 'Text, one JSON object, or one with the whole state and all metrics.'),
  },
  notes: [
    'Exit status: 0 when the kernel holds what was decided, 2 when it does not, 1 when there is no answer. For all nodes of a cluster: kubectl kubeproxy status (docs/guides/kubectl-plugin.md).',
  ],
  run: async ({ values }) => (await import('./status.ts')).runStatusCommand(values),
})

const ui = command({
  name: 'ui',
  summary: 'a page that shows what the proxy of this node does',
  about:
    'Serves a page that shows what the proxy of this node does: services and their backends, traffic, the path of a packet, and what changes do to the kernel. It listens on 127.0.0.1, for browsers that have the token, until the command ends, and changes nothing. Run it as root on the node: it asks the proxy over its control socket.',
  options: {
    port: wholeNumber('The port to listen on. Default: any free one.', { min: 0, max: 65_535 }),
    'control-socket': askedSocket,
  },
  notes: ['From another machine: ssh -L 8080:127.0.0.1:8080 NODE sudo kube-proxy ui --port 8080'],
  run: async ({ values }) => {
    const page = await loadOptional(import('./ui.ts'))
    if (page === undefined)
      throw new Error('Cannot show a page: this installation was made without it; a checkout has it')
    return page.runUiCommand(values)
  },
})

const test = command({
  ...testSpec,
  proxyFlags: {
    kubeconfig: {
      value: 'FILE',
      help: 'The API server, and a user who may make namespaces, pods, Services and EndpointSlices, and exec into pods. Default: $KUBECONFIG, ~/.kube/config, or the access of the pod it runs in.',
    },
  },
  run: async ({ values, given }) => (await import('./test.ts')).runTest(values, given),
})

export const commands: readonly Command[] = [check, explain, doctor, test, plan, render, top, flows, status, ui]

/** For pods of `test`; not in the help. */
export const probe = command({
  name: 'probe',
  summary: 'a client and a server for kube-proxy test',
  about:
    'Runs in the pods of kube-proxy test. serve greets whoever connects to the ports; dial makes the connections that its standard input asks for.',
  arguments: ['serve|dial', '[POD]', '[PORT...]'],
  options: {},
  run: async ({ words }) => (await import('./probe.ts')).runProbeCommand(words),
})

/** For the plugin of kubectl; not in the help. */
export const arrivals = command({
  name: 'arrivals',
  summary: 'what becomes of packets that another node sends to an endpoint here',
  about:
    'Traces packets to an endpoint of this node until one is dropped. One line of JSON when it is ready, one for the result.',
  arguments: ['ADDRESS:PORT[/PROTOCOL]', '[SECONDS]'],
  options: {},
  run: async ({ words }) => (await import('./arrivals.ts')).runArrivalsCommand(words),
})

/** These ask the proxy of this node or, on a machine that runs a sandbox and no proxy, one of a node of the sandbox. */
export const askingCommands = ['explain', 'doctor', 'top', 'flows'] as const

/** An image for nodes may leave the sandbox out. */
export const sandbox = {
  name: 'sandbox',
  summary: 'a miniature cluster to try things in',
  usageStatus: 2,
  load: async (): Promise<CommandGroup> => {
    const loaded = await loadOptional(import('../../packages/sandbox/src/cli/commands.ts'))
    if (loaded !== undefined) return loaded.sandbox
    throw new Error('Cannot run a sandbox: this installation was made without it; a checkout has it')
  },
}
