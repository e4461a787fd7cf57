// The objects of the soak's cluster. All pods are pinned to nodes, or spread over them by the sandbox's scheduler.

const SERVER_PORT = 3000

/** A deployment whose pods answer. */
export function aDeployment(app: string, replicas: number): object {
  const containers = [{ name: 'whoami', image: 'whoami', ports: [{ containerPort: SERVER_PORT }] }]
  return {
    metadata: { name: app },
    spec: {
      replicas,
      selector: { matchLabels: { app } },
      template: { metadata: { labels: { app } }, spec: { containers } },
    },
  }
}

/** A pod on a node that stays for the whole run; clients have no port. */
export function aFixedPod(name: string, nodeName: string, app: string): object {
  const ports = app === 'client' ? [] : [{ containerPort: SERVER_PORT }]
  return {
    metadata: { name, labels: { app } },
    spec: { nodeName, containers: [{ name: 'whoami', image: 'whoami', ports }] },
  }
}

/** A service with a TCP and a UDP port. */
export function aService(name: string, app: string, type: string): object {
  const ports = [
    { name: 'tcp', protocol: 'TCP', port: 80, targetPort: SERVER_PORT },
    { name: 'udp', protocol: 'UDP', port: 80, targetPort: SERVER_PORT },
  ]
  return { metadata: { name }, spec: { type, selector: { app }, ports } }
}
