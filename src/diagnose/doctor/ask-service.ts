// Questions about the objects: the Service, its pods, its EndpointSlices.

import type { ServiceExamination, PodFact, ServiceFact } from './facts.ts'
import { fine, finding, unknown, type DoctorQuestion, type Verdict } from './verdict.ts'

const NO_API = 'give --kubeconfig of a user who may list pods'

export const SERVICE_QUESTIONS: readonly DoctorQuestion<ServiceExamination>[] = [
  { text: 'does the Service exist', ask: askExists },
  { text: 'has it an address for clients outside', ask: askLoadBalancer },
  { text: 'does a proxy serve this type of Service', ask: askServed },
  { text: 'is this the proxy that serves it', ask: askOurs },
  { text: 'does it have the port', ask: askPort },
  { text: 'does its selector match a pod', ask: askSelector },
  { text: 'are its endpoints ready', ask: askReady },
  { text: 'does a pod have the target port', ask: askTargetPort },
  { text: 'are there endpoints for the port', ask: askEndpoints },
]

export function nameOf({ asked }: Pick<ServiceExamination, 'asked'>): { namespace: string; name: string } {
  const [namespace = '', name = ''] = asked.service.split('/')
  return { namespace, name }
}

export function kubectl(facts: Pick<ServiceExamination, 'asked'>, verb: string): string {
  const { namespace, name } = nameOf(facts)
  return `kubectl -n ${namespace} ${verb.replace('SERVICE', name)}`
}

function askExists(facts: ServiceExamination): Verdict {
  if (facts.service !== undefined) return fine(facts.service.type)
  const near = facts.near.length === 0 ? '' : `; near it: ${facts.near.join(', ')}`
  return finding(
    'no-service',
    `there is no Service ${facts.asked.service}${near}`,
    `kubectl get services --all-namespaces | grep ${nameOf(facts).name}`,
  )
}

function askServed(facts: ServiceExamination): Verdict {
  const { service } = facts
  const { namespace, name } = nameOf(facts)
  if (service?.type === 'ExternalName') {
    return finding(
      'external-name',
      `it is an ExternalName: DNS answers with ${service.externalName}, and no proxy is involved`,
      `dig ${service.externalName}`,
    )
  }
  if (service?.clusterIP === 'None') {
    return finding(
      'headless',
      'it is headless (clusterIP: None): DNS answers with the addresses of its pods, and no proxy is involved',
      `dig ${name}.${namespace}.svc.cluster.local`,
    )
  }
  return fine()
}

function askOurs(facts: ServiceExamination): Verdict {
  const { service } = facts
  if (service?.proxyName === undefined) return fine()
  return finding(
    'another-proxy',
    `its label service.kubernetes.io/service-proxy-name is ${JSON.stringify(service.proxyName)}: another proxy serves it`,
    kubectl(facts, 'label service SERVICE service.kubernetes.io/service-proxy-name-'),
  )
}

/** Of an address that a load balancer would have. */
function askLoadBalancer(facts: ServiceExamination): Verdict {
  const { service, asked, explanation } = facts
  if (service === undefined || !service.awaitsLoadBalancer) return undefined
  const isFromOutside = asked.via === undefined && explanation?.frontend?.kind === 'nodePort'
  if (asked.via !== 'loadBalancerIP' && !isFromOutside) return undefined
  const { loadBalancerClass } = service
  const whose = loadBalancerClass === undefined ? '' : ` of the class ${JSON.stringify(loadBalancerClass)}`
  return finding(
    'load-balancer-pending',
    `it has the type LoadBalancer, and no load balancer${whose} has given it an address: only its node ports lead to it from outside`,
    kubectl(facts, 'describe service SERVICE'),
  )
}

function askPort(facts: ServiceExamination): Verdict {
  const { service, asked } = facts
  const ports = (service?.ports ?? []).map(describePort)
  if (asked.port === '' || portsAsked(facts).length > 0) return fine(ports.join(', '))
  return finding(
    'no-port',
    `it has no port ${asked.port}, but ${ports.join(', ')}`,
    kubectl(facts, 'get service SERVICE -o wide'),
  )
}

function askSelector(facts: ServiceExamination): Verdict {
  const { service } = facts
  if (service === undefined) return undefined
  const { selector, pods, endpoints } = service
  if (selector === undefined) {
    if (endpoints.count > 0) return fine('it has no selector; its EndpointSlices are written by hand')
    return finding(
      'no-selector',
      'it has no selector, and nobody has written an EndpointSlice for it',
      kubectl(facts, 'get endpointslices -l kubernetes.io/service-name=SERVICE'),
    )
  }
  if (selector === 'not known' || pods === undefined) {
    return endpoints.count > 0 ? fine(`it has ${endpoints.count} endpoints`) : unknown(NO_API)
  }
  const text = Object.entries(selector)
    .map(([key, value]) => `${key}=${value}`)
    .join(',')
  if (pods.length === 0) {
    return finding(
      'selector-matches-nothing',
      `its selector ${text} matches no pod`,
      kubectl(facts, 'get pods --show-labels'),
    )
  }
  return fine(`${pods.length} pods have ${text}`)
}

function askReady(facts: ServiceExamination): Verdict {
  const { pods, endpoints } = facts.service ?? {}
  if (pods !== undefined && pods.length > 0 && pods.every(({ ready }) => !ready)) {
    const [first] = pods as [PodFact]
    return finding(
      'pods-not-ready',
      `none of its ${pods.length} pods is ready: ${first.name} is ${first.phase}${first.why === '' ? '' : `, ${first.why}`}`,
      `kubectl -n ${nameOf(facts).namespace} describe pod ${first.name}`,
    )
  }
  if (endpoints === undefined || endpoints.count === 0) return undefined
  if (endpoints.ready > 0) return fine(`${endpoints.ready} of ${endpoints.count}`)
  if (endpoints.draining > 0)
    return fine(`none of ${endpoints.count}, but ${endpoints.draining} still serve while they terminate`)
  return finding(
    'pods-not-ready',
    `none of its ${endpoints.count} endpoints is ready`,
    kubectl(facts, 'get endpointslices -l kubernetes.io/service-name=SERVICE -o yaml'),
  )
}

function askTargetPort(facts: ServiceExamination): Verdict {
  const { service } = facts
  if (service === undefined) return undefined
  const pods = service.pods ?? []
  for (const port of portsAsked(facts)) {
    const { targetPort } = port
    if (targetPort === undefined || !/[a-z]/i.test(targetPort)) continue
    if (pods.length === 0 || pods.some((pod) => pod.portNames.includes(targetPort))) continue
    const names = [...new Set(pods.flatMap((pod) => pod.portNames))]
    return finding(
      'target-port-name',
      `targetPort ${JSON.stringify(targetPort)} of port ${describePort(port)} names no port of its pods: they have ${names.join(', ') || 'none'}`,
      kubectl(facts, 'edit service SERVICE'),
    )
  }
  // The next question compares these ports.
  if (service.endpointPorts.length > 0) return fine(service.endpointPorts.join(', '))
  return portsAsked(facts).some(({ targetPort }) => targetPort === undefined) ? unknown(NO_API) : fine()
}

function askEndpoints(facts: ServiceExamination): Verdict {
  const { service, explanation } = facts
  if (explanation === undefined || service === undefined || explanation.frontend === null) return undefined
  if (explanation.backends.length > 0) return fine(`${explanation.backends.length}`)
  if (service.endpoints.count === 0) {
    return finding(
      'no-endpoints',
      'its EndpointSlices have no endpoint',
      kubectl(facts, 'get endpointslices -l kubernetes.io/service-name=SERVICE'),
    )
  }
  const family = explanation.question.destination.includes(':') ? 'IPv6' : 'IPv4'
  if (!service.endpointFamilies.includes(family)) {
    return finding(
      'endpoint-family',
      `${explanation.question.destination} is ${family}, and its EndpointSlices have only ${service.endpointFamilies.join(' and ')} endpoints`,
      kubectl(facts, 'get endpointslices -l kubernetes.io/service-name=SERVICE'),
    )
  }
  return finding(
    'endpoint-port-name',
    `its EndpointSlices have ${service.endpoints.count} endpoints, but for other ports: ${service.endpointPorts.join(', ')}`,
    kubectl(facts, 'get endpointslices -l kubernetes.io/service-name=SERVICE -o yaml'),
  )
}

function portsAsked({ service, asked }: ServiceExamination): ServiceFact['ports'] {
  const ports = service?.ports ?? []
  if (asked.port === '') return ports
  return ports.filter((port) => port.name === asked.port || String(port.port) === asked.port)
}

function describePort({ name, port, protocol }: ServiceFact['ports'][number]): string {
  return `${name === '' ? '' : `${name} `}${port}/${protocol}`
}
