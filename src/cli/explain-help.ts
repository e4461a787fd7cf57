export function formatExplainHelp(): string {
  return `\
Says what the proxy does with a connection, and why: the frontend that takes it, the policy, each backend and why it is
eligible or not, affinity, masquerading, and the same way through the kernel as it is now. Changes nothing.

Usage:
  kube-proxy explain [FROM] TO [flags]

  FROM is an address, a pod ([NAMESPACE/]NAME), node, or outside. (default node)
  TO   is [NAMESPACE/]SERVICE[:PORT], ADDRESS:PORT[/udp], or a URL. PORT is a number or a name.

  kube-proxy explain default/web                                     # the node itself to the cluster IP of a Service
  kube-proxy explain outside default/web                             # a client outside to its load balancer or node port
  kube-proxy explain 10.244.1.7 10.96.0.10:53/udp
  kube-proxy explain default/web --manifests ./web --proxy-mode nftables      # from files; no root, no kernel
  kube-proxy explain client web:http --kubeconfig ~/.kube/config --node node-2   # what would node-2 do?
  nft -j list ruleset > dump.json && kube-proxy explain outside 10.96.0.10:53/udp --dump dump.json

By default it asks the running proxy of this node and reads the kernel; that takes root.

Flags:
      --via clusterIP|loadBalancerIP|externalIP|nodePort   Which address of the Service is dialled. (default: as it fits FROM)
      --family 4|6             Which address of a Service of both IP families. (default: the Service's first)
      --manifests PATH         Ask files, a folder or one of them, and no kernel. Flags of the proxy may follow.
      --kubeconfig FILE        Ask an API server what a node would do. Flags of the proxy may follow; without any, its
                               ConfigMap kube-system/kube-proxy says how proxies are set, if it may be read.
      --node NAME              The node to ask about, with --manifests or --kubeconfig.
      --dump FILE              What is in the kernel, from \`nft -j list ruleset\` or \`iptables-save\`; - is the standard input.
      --node-addresses A,B     With --dump alone: the addresses of the machine that it comes from.
      --send                   Also send a real packet from here, and show what the kernel does with it.
      --sandbox NAME           FROM is a pod of this sandbox: with --send, it is the one that sends.
      --control-socket PATH    Where the running proxy can be asked.
  -o, --output text|json|svg|mermaid   Lines for people, one JSON object, or a picture. (default text)
  -h, --help                   Print this text.

Exit status: 0 when the connection is sent to an endpoint and nothing differs; 2 when it is not; 3 when the kernel, or the
packet that was sent, does not do what was decided; 1 when the question cannot be answered.
`
}
