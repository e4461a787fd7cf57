import { joinHostPort } from '../../../../../src/lib/ip.ts'
import { check, checkOptional, checkRequired } from '../fields/check.ts'
import { validateEndpointIp } from '../fields/addresses.ts'
import { dnsLabelProblem, dnsSubdomainProblem, portProblem } from '../fields/names.ts'
import { requiredValue } from '../fields/problem.ts'
import { ageColumn, nameColumn, none } from './columns.ts'
import { defineResource } from './resource.ts'
import { validateProtocol } from './service-validation.ts'
import type { FieldProblem } from '../fields/problem.ts'
import type { EndpointAddress, Endpoints, EndpointsPort, EndpointSubset } from '../objects/endpoints.ts'

export const endpoints = defineResource<Endpoints>({
  kind: 'Endpoints',
  plural: 'endpoints',
  shortNames: ['ep'],
  createOnUpdate: true,
  columns: [nameColumn, { name: 'Endpoints', cell: formatEndpoints }, ageColumn],
  setDefaults({ subsets }) {
    for (const subset of subsets ?? []) for (const port of subset.ports ?? []) port.protocol ??= 'TCP'
  },
  validate,
  validateUpdate: validate,
})

const shown = 3

function formatEndpoints({ subsets = [] }: Endpoints): string {
  if (subsets.length === 0) return none
  const all = subsets.flatMap(({ addresses = [], ports = [] }) =>
    ports.length === 0
      ? addresses.map(({ ip }) => ip)
      : ports.flatMap(({ port }) => addresses.map(({ ip }) => joinHostPort(ip, port))),
  )
  return listSome(all)
}

export function listSome(all: readonly string[]): string {
  const text = all.slice(0, shown).join(',')
  return all.length > shown ? `${text} + ${all.length - shown} more...` : text
}

function validate({ subsets = [] }: Endpoints): FieldProblem[] {
  return subsets.flatMap((subset, i) => validateSubset(subset, `subsets[${i}]`))
}

function validateSubset(subset: EndpointSubset, path: string): FieldProblem[] {
  const { addresses = [], notReadyAddresses = [], ports = [] } = subset
  return [
    ...(addresses.length + notReadyAddresses.length === 0
      ? [requiredValue(path, 'must specify `addresses` or `notReadyAddresses`')]
      : []),
    ...addresses.flatMap((address, i) => validateAddress(address, `${path}.addresses[${i}]`)),
    ...notReadyAddresses.flatMap((address, i) => validateAddress(address, `${path}.notReadyAddresses[${i}]`)),
    ...ports.flatMap((port, i) => validatePort(port, `${path}.ports[${i}]`, ports.length > 1)),
  ]
}

function validateAddress({ ip, hostname, nodeName }: EndpointAddress, path: string): FieldProblem[] {
  return [
    ...validateEndpointIp(`${path}.ip`, ip),
    ...checkOptional(`${path}.hostname`, hostname, dnsLabelProblem),
    ...checkOptional(`${path}.nodeName`, nodeName, dnsSubdomainProblem),
  ]
}

function validatePort({ name, port, protocol }: EndpointsPort, path: string, nameRequired: boolean): FieldProblem[] {
  return [
    ...(nameRequired ? checkRequired : checkOptional)(`${path}.name`, name, dnsLabelProblem),
    ...check(`${path}.port`, port, portProblem),
    ...validateProtocol(`${path}.protocol`, protocol),
  ]
}
