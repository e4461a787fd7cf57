export function formatCheckHelp(): string {
  return `\
Looks whether this machine and its cluster have what the proxy needs, and changes nothing. To be run on a node before the
swap, as the proxy would be: with the same flags, as the same user, in the same network namespace.

Usage:
  kube-proxy check [-o json] [flags of the proxy]

  kube-proxy check --config=/var/lib/kube-proxy/config.conf
  kube-proxy check --kubeconfig=/etc/kubernetes/kube-proxy.conf --proxy-mode=nftables

Flags:
  -o, --output text|json   Lines for people, or one JSON object. (default text)
  -h, --help               Print this text.

Each line is ok, a note, a warning, or a PROBLEM; what is behind -> is what to do about it.
Exit status: 0 when the proxy can run here, 1 when a problem keeps it from that.
`
}
