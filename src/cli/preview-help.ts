export function formatPlanHelp(): string {
  return `\
Says what the proxy would program on this node, as the difference from what is in the kernel now, and changes nothing. Without
flags of the proxy it asks the one that runs on this node for its configuration and for what it knows of the cluster; there should
be nothing to do then. With them, it says what a proxy with these flags would do.

Usage:
  kube-proxy plan [flags]
  kube-proxy plan --config=FILE --manifests=DIR [flags]
  kube-proxy plan --kubeconfig=FILE --hostname-override=NODE [flags]

  kube-proxy plan --mode=nftables        what a change of the mode would program

Flags:
      --mode MODE             The mode whose commands are shown. Empty: the one that is configured.
      --family 4|6            Only this IP family.
      --limit N               So many commands of each program are shown. (default 100)
      --control-socket PATH   Where the proxy is asked. Empty: that of this network namespace.
  -o, --output text|json      Lines for people, or one JSON object with all commands. (default text)
  -h, --help                  Print this text.

The first lines count the commands of every mode; * is the mode whose commands follow. They are in the words of nft -f,
iptables-restore --noflush, ipvsadm -R and ip -batch. A running proxy may have left a few sets that no service uses any more: it sweeps
them when they are many, or with its next comparison.
Exit status: 0 when there is nothing to do in that mode, 2 when there is, 1 when that cannot be told.
`
}

export function formatRenderHelp(): string {
  return `\
Prints what a mode would program on a node whose kernel has nothing yet, as text that nft -f, iptables-restore --noflush,
ipvsadm -R and ip -batch read. Needs no root, looks at no kernel, and changes nothing.

Usage:
  kube-proxy render --mode=MODE --manifests=DIR [--node=NODE] [flags of the proxy]

  kube-proxy render --mode=nftables --manifests=examples/standalone | sudo nft -f -
  kube-proxy render --mode=ipvs --manifests=DIR --for=ipvsadm | sudo ipvsadm -R

Flags:
      --mode MODE            iptables, ipvs, nftables or userspace. Empty: the one that is configured.
      --node NODE            The node, as --hostname-override: its Node object is among the objects. Without one, the addresses
                             are those of this machine.
      --for PROGRAM          Only what this program reads: nft, iptables-restore, ip6tables-restore, ipvsadm, ip.
      --family 4|6           Only this IP family.
  -h, --help                 Print this text.

Where several programs have something to read, each part has a heading "# for PROGRAM"; --for gives one part without it.
What cannot be said in their words is said on stderr. Exit status: 0, or 1 when it cannot be rendered.
`
}
