// The pods and services of services.test.ts.

/** A pod on a node, which answers on port 3000 when it is to. */
export function aPod(name: string, nodeName: string, app: string): object {
  const ports = app === 'client' ? [] : [{ name: 'web', containerPort: 3000 }]
  return {
    metadata: { name, labels: { app, name } },
    spec: { nodeName, containers: [{ name: 'whoami', image: 'whoami', ports }], terminationGracePeriodSeconds: 1 },
  }
}

export const webPods = [
  aPod('a1', 'node-1', 'web'),
  aPod('a2', 'node-1', 'web'),
  aPod('b1', 'node-2', 'web'),
  aPod('client1', 'node-1', 'client'),
  aPod('client2', 'node-2', 'client'),
]

/** A service of both families on port 80, for the pods with these labels. */
export function aService(name: string, selector: Readonly<Record<string, string>>, spec: object = {}): object {
  return {
    metadata: { name },
    spec: { selector, ipFamilyPolicy: 'RequireDualStack', ports: [{ port: 80, targetPort: 'web' }], ...spec },
  }
}

const all = { app: 'web' }
const onNode2 = { name: 'b1' }

export const webServices = [
  aService('plain', all),
  aService('front', all, { type: 'LoadBalancer' }),
  aService('front-local', onNode2, { type: 'LoadBalancer', externalTrafficPolicy: 'Local' }),
  // The last: when it answers, so do the others.
  aService('sentinel', all),
]

/** Its port is closed to the probe. */
export function aSickPod(): object {
  const readinessProbe = { tcpSocket: { port: 9 }, periodSeconds: 1 }
  const containers = [
    { name: 'whoami', image: 'whoami', ports: [{ name: 'web', containerPort: 3000 }], readinessProbe },
  ]
  return { metadata: { name: 'sick', labels: { app: 'sick' } }, spec: { nodeName: 'node-1', containers } }
}

export function aSliceByHand(service: string, { name, ready }: { name: string; ready: boolean }): object {
  return {
    metadata: { name: `${service}-1`, labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    ports: [{ name, port: 3000, protocol: 'TCP' }],
    endpoints: [{ addresses: ['10.244.1.77'], conditions: { ready } }],
  }
}
