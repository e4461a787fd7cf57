// `kube-proxy sandbox`: its commands.

import { command, type CommandGroup, oneOf, output, text, toggle, wholeNumber } from '../../../../src/lib/command.ts'
import { modeNames } from '../../../../src/modes/all.ts'
import { MAX_NODES } from '../address-plan.ts'

const name = text('NAME', 'Which sandbox, where several run. Default: the only one, or the one named sandbox.')

const up = command({
  name: 'sandbox up',
  summary: 'start a sandbox ("up" may be left out); Ctrl-C takes it down',
  about: 'Starts a sandbox. Ctrl-C takes it down.',
  arguments: ['[-- FLAGS OF THE PROXIES...]'],
  options: {
    nodes: wholeNumber('The number of nodes. (default 2)', { min: 1, max: MAX_NODES }),
    'proxy-mode': oneOf(modeNames, 'The mode of the proxies.', 'nftables'),
    'dual-stack': toggle('IPv6 beside IPv4 for nodes, pods and services.'),
    empty: toggle('Start without the example.'),
    detach: toggle('Return when the sandbox is ready; it runs until `kube-proxy sandbox down`.', 'd'),
    name,
  },
  run: async ({ values, words, argv }) => {
    const { runSandboxStart } = await import('./sandbox-start.ts')
    const start = {
      name: values.name,
      nodes: values.nodes ?? 2,
      mode: values['proxy-mode'],
      stack: values['dual-stack'] ? 'dual' : 'IPv4',
      content: values.empty ? 'empty' : 'example',
      life: values.detach ? 'detached' : 'foreground',
      proxyFlags: words,
    } as const
    return runSandboxStart(start, argv)
  },
})

const exec = command({
  name: 'sandbox exec',
  summary: 'run a command, or a shell, in a pod, on a node, or on the machine',
  about:
    'Runs a command in the network of a pod, of a node, or of the machine (named machine), with its host name and environment; a shell without COMMAND. The exit status is that of the command.',
  arguments: ['POD|NODE', '[-- COMMAND...]'],
  options: { name },
  examples: [['sandbox exec node-1 -- ip address']],
  run: async ({ values, words: [place = '', ...words], argv }) =>
    (await import('./sandbox-exec.ts')).runSandboxExec({ name: values.name, place, command: words }, argv),
})

const mode = command({
  name: 'sandbox mode',
  summary: 'run the proxy of a node in another mode',
  about: 'Starts the proxy of a node in another mode, and returns when it serves.',
  arguments: ['NODE', modeNames.join('|')],
  options: { name },
  run: async ({ values, words: [node = '', mode = ''] }) =>
    (await import('./sandbox-change.ts')).runSandboxMode({ name: values.name, node, mode }),
})

const apiServer = command({
  name: 'sandbox api-server',
  summary: 'take the API server away from its clients, and give it back',
  about: 'Takes the API server away from all its clients, or gives it back.',
  arguments: ['away|back'],
  options: { name },
  run: async ({ values, words: [where] }) =>
    (await import('./sandbox-change.ts')).runSandboxApiServer({ name: values.name, where: where as 'away' | 'back' }),
})

const kubeconfig = command({
  name: 'sandbox kubeconfig',
  summary: 'print the path of its kubeconfig',
  about: 'Prints the path of the kubeconfig; into a file, a copy of it.',
  options: { name },
  examples: [['sandbox kubeconfig', 'export KUBECONFIG=$(kube-proxy sandbox kubeconfig)']],
  run: async ({ values }) => (await import('./sandbox-kubeconfig.ts')).runSandboxKubeconfig(values),
})

const status = command({
  name: 'sandbox status',
  summary: 'print what runs',
  about: 'Prints the nodes and pods of the running sandboxes.',
  options: { name, output: output(['text', 'json'], 'Text, or one JSON array.') },
  run: async ({ values }) => (await import('./sandbox-status.ts')).runSandboxStatus(values),
})

const down = command({
  name: 'sandbox down',
  summary: 'take it down, and remove what a crashed one left',
  about: 'Takes a sandbox down and waits until it is gone. Removes what crashed ones left.',
  options: { name },
  run: async ({ values }) => (await import('./sandbox-down.ts')).runSandboxDown(values),
})

export const sandbox: CommandGroup = {
  name: 'sandbox',
  about:
    'A miniature Kubernetes cluster on this machine, with this program on each of its nodes. Nodes and pods are network namespaces; there are no containers and no images. kubectl and curl work with it.',
  commands: [up, exec, mode, apiServer, kubeconfig, status, down],
}
