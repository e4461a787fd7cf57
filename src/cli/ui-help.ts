/** The text of `kube-proxy ui --help`. */
export function formatUiHelp(): string {
  return `kube-proxy ui: a page that shows what the proxy of this node does: services and their backends, what flows, the way of a packet,
what changes do to the kernel. It is served on 127.0.0.1 for a browser that has the token, until the command ends, and it changes
nothing. What it shows is asked of the running proxy over its control socket: run it as root, on the node.

Usage:
  kube-proxy ui [flags]

Flags:
  --port N               The port to listen on. Default: any that is free.
  --control-socket PATH  The proxy to ask. Default: KUBE_PROXY_CONTROL_SOCKET, or the one of this network namespace.
  -h, --help             Print this text.

From another machine: ssh -L 8080:127.0.0.1:8080 NODE sudo kube-proxy ui --port 8080
`
}
