import { formatColumns } from '../report.ts'
import { sandboxFlags } from './sandbox-flags.ts'

export function formatSandboxHelp(): string {
  const flags = formatColumns(
    Object.entries(sandboxFlags).map(([name, { value, help }]) => [
      `  --${name}${value === undefined ? '' : ` ${value}`}`,
      help,
    ]),
  )
  return `\
A miniature Kubernetes cluster on this machine, with this program on each of its nodes. Nodes and pods are network
namespaces; there are no containers and no images. kubectl and curl work against it.

Usage:
  kube-proxy sandbox [flags] [-- flags of the proxies]   start one; Ctrl-C takes it down
  kube-proxy sandbox exec POD|NODE -- COMMAND            run a command in a pod, on a node, or on the machine (machine)
  kube-proxy sandbox mode NODE MODE                      run the proxy of a node in another mode
  kube-proxy sandbox api-server away|back                take the API server from its clients, and give it back
  kube-proxy sandbox kubeconfig                          print the path of its kubeconfig (into a file: a copy of it)
  kube-proxy sandbox status [-o json]                    print what runs
  kube-proxy sandbox down                                take it down, and clear what a crashed one left

Flags:
${flags.join('\n')}
`
}
