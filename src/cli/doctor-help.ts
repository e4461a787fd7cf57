export function formatDoctorHelp(): string {
  return `\
My Service does not answer: asks the questions that an experienced person asks, in order, and says the first that fails, with
the next command to type. Changes nothing. To be run as root on the node at which the Service does not answer.

Usage:
  kube-proxy doctor [NAMESPACE/SERVICE[:PORT]] [flags]

  kube-proxy doctor                                    # the node as a whole, then every Service; dials nothing
  kube-proxy doctor default/web
  kube-proxy doctor default/web --from outside --kubeconfig ~/.kube/config
  kube-proxy doctor default/web --via nodePort

Flags:
      --from FROM             Who does not get an answer: an address, a pod, node, or outside. (default node)
      --via KIND              Only this address of the Service: clusterIP, loadBalancerIP, externalIP or nodePort. (default all)
      --kubeconfig FILE       An API server and a user who may list pods: selectors and readiness are looked at, too.
      --control-socket PATH   Where the running proxy can be asked.
  -o, --output text|json      Lines for people, or one JSON object. (default text)
  -h, --help                  Print this text.

Exit status: 0 when all questions were answered and nothing is wrong, 2 when something is, 3 when nothing was found and some
question could not be answered (marked ?), 1 when the question cannot be asked.
`
}
