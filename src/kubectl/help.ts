export function formatHelp(): string {
  return `Asks the kube-proxy of each node of a cluster, through the API server.

Usage: kubectl kubeproxy COMMAND [options]

Commands:
  status                     one line a node: mode, version, in sync since when, drift, refused, ejected, slowest change
  explain [FROM] TO          what happens to a connection, and why; on the node of FROM, if that is a pod
  doctor [SERVICE]           why a Service does not answer; on all nodes, unless --node or --from POD chooses one
  flows [SERVICE]            who connects to the Services, live; on all nodes, unless --node chooses one
  top                        the traffic of the Services of one node
  test                       whether every kind of Service works, on every node: kubectl kubeproxy test --help
  sysdump                    all that a report of a fault needs, as one archive without secrets

Options:
      --kubeconfig FILE      Default: KUBECONFIG, else ~/.kube/config.
      --context NAME         Default: the current one.
  -n, --namespace NAME       Where the pods of the proxies are. (default kube-system)
      --node NODE            The node whose proxy is asked.
      --image IMAGE          An image of kube-proxy-ts, for explain and doctor on nodes that run another kube-proxy: a pod for
                             a moment reads the kernel there, and is deleted. For test: the image of the probes.
  -f, --file FILE            Where sysdump writes. Default: kubeproxy-sysdump-TIME.tar.gz.
      --timeout SECONDS      How long a node may take to answer. (default 30)
  -h, --help                 Print this text.

Other options, and all behind --, go to the command of the proxy as they are: kube-proxy help COMMAND has them. Those of test
are the plugin's own.

It takes the right to list pods and nodes, to get pods, and to create pods/exec in the namespace of the proxies; --image takes
the right to create and delete pods there; test takes those of an administrator.
Exit status: that of the command; of status 2 when a node is not in sync.
`
}
