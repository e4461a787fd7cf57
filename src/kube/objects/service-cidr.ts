// What is read from a ServiceCIDR (networking.k8s.io/v1).

import { field, list } from '../encoding/message-to-json.ts'
import type { Resource } from '../resource.ts'
import type { ServiceCIDR } from '../types.ts'
import { readersOf } from './object-meta.ts'

export const serviceCidrs: Resource<ServiceCIDR> = {
  name: 'servicecidrs',
  kind: 'ServiceCIDR',
  path: '/apis/networking.k8s.io/v1/servicecidrs',
  ...readersOf({
    keepKey: () => false,
    message: { 2: field('spec', { 1: list('cidrs', 'text') }) },
    read: ({ name }, json, reader) => ({ name, cidrs: reader.strings(reader.object(json['spec'])['cidrs']) }),
  }),
}
