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
