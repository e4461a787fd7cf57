// Field numbers from the generated.proto files of k8s.io/api (core/v1, discovery/v1, networking/v1) and
// k8s.io/apimachinery (meta/v1), for the fields that tests write.

import type { Schema } from './proto-writer.ts'

const objectMeta: Schema = {
  name: [1, 'string'],
  generateName: [2, 'string'],
  namespace: [3, 'string'],
  uid: [5, 'string'],
  resourceVersion: [6, 'string'],
  generation: [7, 'int'],
  creationTimestamp: [8, 'time'],
  deletionTimestamp: [9, 'time'],
  labels: [11, 'map'],
  annotations: [12, 'map'],
}

const objectReference: Schema = {
  kind: [1, 'string'],
  namespace: [2, 'string'],
  name: [3, 'string'],
  uid: [4, 'string'],
}

const named: Schema = { name: [1, 'string'] }

const service: Schema = {
  metadata: [1, objectMeta],
  spec: [
    2,
    {
      ports: [
        1,
        {
          name: [1, 'string'],
          protocol: [2, 'string'],
          port: [3, 'int'],
          targetPort: [4, 'intOrString'],
          nodePort: [5, 'int'],
          appProtocol: [6, 'string'],
        },
        'repeated',
      ],
      selector: [2, 'map'],
      clusterIP: [3, 'string'],
      type: [4, 'string'],
      externalIPs: [5, 'string', 'repeated'],
      sessionAffinity: [7, 'string'],
      loadBalancerIP: [8, 'string'],
      loadBalancerSourceRanges: [9, 'string', 'repeated'],
      externalName: [10, 'string'],
      externalTrafficPolicy: [11, 'string'],
      healthCheckNodePort: [12, 'int'],
      publishNotReadyAddresses: [13, 'bool'],
      sessionAffinityConfig: [14, { clientIP: [1, { timeoutSeconds: [1, 'int'] }] }],
      ipFamilyPolicy: [17, 'string'],
      clusterIPs: [18, 'string', 'repeated'],
      ipFamilies: [19, 'string', 'repeated'],
      allocateLoadBalancerNodePorts: [20, 'bool'],
      loadBalancerClass: [21, 'string'],
      internalTrafficPolicy: [22, 'string'],
      trafficDistribution: [23, 'string'],
    },
  ],
  status: [
    3,
    {
      loadBalancer: [
        1,
        { ingress: [1, { ip: [1, 'string'], hostname: [2, 'string'], ipMode: [3, 'string'] }, 'repeated'] },
      ],
    },
  ],
}

const endpointSlice: Schema = {
  metadata: [1, objectMeta],
  endpoints: [
    2,
    {
      addresses: [1, 'string', 'repeated'],
      conditions: [2, { ready: [1, 'bool'], serving: [2, 'bool'], terminating: [3, 'bool'] }],
      hostname: [3, 'string'],
      targetRef: [4, objectReference],
      nodeName: [6, 'string'],
      zone: [7, 'string'],
      hints: [8, { forZones: [1, named, 'repeated'], forNodes: [2, named, 'repeated'] }],
    },
    'repeated',
  ],
  ports: [
    3,
    { name: [1, 'string'], protocol: [2, 'string'], port: [3, 'int'], appProtocol: [4, 'string'] },
    'repeated',
  ],
  addressType: [4, 'string'],
}

const endpointAddress: Schema = {
  ip: [1, 'string'],
  targetRef: [2, objectReference],
  hostname: [3, 'string'],
  nodeName: [4, 'string'],
}

const endpoints: Schema = {
  metadata: [1, objectMeta],
  subsets: [
    2,
    {
      addresses: [1, endpointAddress, 'repeated'],
      notReadyAddresses: [2, endpointAddress, 'repeated'],
      ports: [
        3,
        { name: [1, 'string'], port: [2, 'int'], protocol: [3, 'string'], appProtocol: [4, 'string'] },
        'repeated',
      ],
    },
    'repeated',
  ],
}

const node: Schema = {
  metadata: [1, objectMeta],
  spec: [
    2,
    {
      podCIDR: [1, 'string'],
      providerID: [3, 'string'],
      unschedulable: [4, 'bool'],
      taints: [5, { key: [1, 'string'], value: [2, 'string'], effect: [3, 'string'] }, 'repeated'],
      podCIDRs: [7, 'string', 'repeated'],
    },
  ],
  status: [3, { addresses: [5, { type: [1, 'string'], address: [2, 'string'] }, 'repeated'] }],
}

const serviceCidr: Schema = { metadata: [1, objectMeta], spec: [2, { cidrs: [1, 'string', 'repeated'] }] }

/** The kinds that can be written as protobuf; others are served as JSON only. */
export const SCHEMAS: Readonly<Record<string, Schema>> = {
  Service: service,
  EndpointSlice: endpointSlice,
  Endpoints: endpoints,
  Node: node,
  ServiceCIDR: serviceCidr,
}

export const listMeta: Schema = { resourceVersion: [2, 'string'], continue: [3, 'string'] }

export const status: Schema = {
  metadata: [1, listMeta],
  status: [2, 'string'],
  message: [3, 'string'],
  reason: [4, 'string'],
  details: [
    5,
    { causes: [4, { reason: [1, 'string'], message: [2, 'string'] }, 'repeated'], retryAfterSeconds: [5, 'int'] },
  ],
  code: [6, 'int'],
}
