import { check, checkOptional, checkUnique, immutable, oneOf } from '../fields/check.ts'
import { validateEndpointIp, validateFamily } from '../fields/addresses.ts'
import { dnsLabelProblem, dnsSubdomainProblem, labelValueProblem } from '../fields/names.ts'
import { requiredValue, tooMany } from '../fields/problem.ts'
import { addressTypes } from '../objects/endpoints.ts'
import { ageColumn, nameColumn } from './columns.ts'
import { listSome } from './endpoints.ts'
import { defineResource } from './resource.ts'
import { validateProtocol } from './service-validation.ts'
import type { FieldProblem } from '../fields/problem.ts'
import type { EndpointSlice, SliceEndpoint, SlicePort } from '../objects/endpoints.ts'

const maxEndpoints = 1000
const maxAddresses = 100
const maxPorts = 20_000
const maxHints = 8

export const endpointSlices = defineResource<EndpointSlice>({
  group: 'discovery.k8s.io',
  kind: 'EndpointSlice',
  generation: 'of all but metadata',
  createOnUpdate: true,
  columns: [
    nameColumn,
    { name: 'AddressType', cell: ({ addressType }) => addressType },
    { name: 'Ports', cell: ({ ports }) => formatPorts(ports ?? []) },
    {
      name: 'Endpoints',
      cell: ({ endpoints }) => orUnset(listSome((endpoints ?? []).flatMap(({ addresses }) => addresses))),
    },
    ageColumn,
  ],
  setDefaults({ ports }) {
    for (const port of ports ?? []) {
      port.name ??= ''
      port.protocol ??= 'TCP'
    }
  },
  validate,
  validateUpdate: (next, current) => [
    ...immutable('addressType', next.addressType, current.addressType),
    ...validate(next),
  ],
})

function formatPorts(ports: readonly SlicePort[]): string {
  return orUnset(listSome(ports.map(({ port, name }) => String(port ?? name ?? '*'))))
}

function orUnset(text: string): string {
  return text === '' ? '<unset>' : text
}

function validate(slice: EndpointSlice): FieldProblem[] {
  return [...validateAddressType(slice), ...validatePorts(slice.ports ?? []), ...validateEndpoints(slice)]
}

function validateAddressType({ addressType }: EndpointSlice): FieldProblem[] {
  return addressType === '' ? [requiredValue('addressType')] : oneOf('addressType', addressType, addressTypes)
}

function validatePorts(ports: readonly SlicePort[]): FieldProblem[] {
  if (ports.length > maxPorts) return [tooMany('ports', ports.length, maxPorts)]
  const names = ports.map(({ name = '' }) => name)
  return ports.flatMap(({ name = '', protocol }, i) => [
    ...(name === '' ? [] : check(`ports[${i}].name`, name, dnsLabelProblem)),
    ...checkUnique(`ports[${i}].name`, names, i),
    ...validateProtocol(`ports[${i}].protocol`, protocol),
  ])
}

function validateEndpoints({ endpoints, addressType }: EndpointSlice): FieldProblem[] {
  const all = endpoints ?? []
  if (all.length > maxEndpoints) return [tooMany('endpoints', all.length, maxEndpoints)]
  return all.flatMap((endpoint, i) => validateEndpoint(endpoint, addressType, `endpoints[${i}]`))
}

function validateEndpoint(endpoint: SliceEndpoint, addressType: string, path: string): FieldProblem[] {
  const { nodeName, hostname } = endpoint
  return [
    ...validateAddresses(endpoint.addresses ?? [], addressType, `${path}.addresses`),
    ...checkOptional(`${path}.nodeName`, nodeName, dnsSubdomainProblem),
    ...checkOptional(`${path}.hostname`, hostname, dnsLabelProblem),
    ...validateHints(endpoint, `${path}.hints`),
  ]
}

function validateAddresses(addresses: readonly string[], addressType: string, path: string): FieldProblem[] {
  if (addresses.length === 0) return [requiredValue(path, 'must contain at least 1 address')]
  if (addresses.length > maxAddresses) return [tooMany(path, addresses.length, maxAddresses)]
  return addresses.flatMap((address, i) => {
    if (addressType === 'FQDN') return check(`${path}[${i}]`, address, dnsSubdomainProblem)
    if (addressType !== 'IPv4' && addressType !== 'IPv6') return []
    const problems = validateEndpointIp(`${path}[${i}]`, address)
    return problems.length > 0 ? problems : validateFamily(path, address, addressType === 'IPv4' ? 4 : 6)
  })
}

function validateHints({ hints }: SliceEndpoint, path: string): FieldProblem[] {
  const lists = [
    { names: (hints?.forZones ?? []).map(({ name }) => name), path: `${path}.forZones`, rule: labelValueProblem },
    { names: (hints?.forNodes ?? []).map(({ name }) => name), path: `${path}.forNodes`, rule: dnsSubdomainProblem },
  ]
  return lists.flatMap(({ names, path, rule }) => {
    if (names.length > maxHints) return [tooMany(path, names.length, maxHints)]
    return names.flatMap((name, i) => [
      ...checkUnique(`${path}[${i}].name`, names, i),
      ...check(`${path}[${i}].name`, name, rule),
    ])
  })
}
