// The spec of a pod, alone or in a template: defaults and rules.

import { check, checkOptional, checkRequired, checkUnique, oneOf, validateLabels } from '../fields/check.ts'
import { dnsLabelProblem, dnsSubdomainProblem, envNameProblem, portNameProblem, portProblem } from '../fields/names.ts'
import { duplicateValue, forbiddenField, invalidValue, requiredValue } from '../fields/problem.ts'
import { validateProtocol } from './service-validation.ts'
import type { Container, ContainerPort, PodSpec, PodTemplateSpec, Probe, Volume } from '../objects/pod.ts'
import type { FieldProblem } from '../fields/problem.ts'

export function setPodSpecDefaults(spec: PodSpec): void {
  spec.restartPolicy ??= 'Always'
  spec.dnsPolicy ??= 'ClusterFirst'
  spec.schedulerName ??= 'default-scheduler'
  spec.terminationGracePeriodSeconds ??= 30
  if (spec.terminationGracePeriodSeconds < 0) spec.terminationGracePeriodSeconds = 1
  spec.securityContext ??= {}
  if (spec.serviceAccountName !== undefined) spec.serviceAccount ??= spec.serviceAccountName
  for (const container of [...(spec.initContainers ?? []), ...(spec.containers ?? [])]) {
    setContainerDefaults(container, spec.hostNetwork === true)
  }
  for (const volume of spec.volumes ?? []) setVolumeDefaults(volume)
}

function setContainerDefaults(container: Container, hostNetwork: boolean): void {
  container.terminationMessagePath ??= '/dev/termination-log'
  container.terminationMessagePolicy ??= 'File'
  container.imagePullPolicy ??= isLatest(container.image ?? '') ? 'Always' : 'IfNotPresent'
  for (const port of container.ports ?? []) {
    port.protocol ??= 'TCP'
    if (hostNetwork) port.hostPort ??= port.containerPort
  }
  for (const { valueFrom } of container.env ?? []) {
    if (valueFrom?.fieldRef !== undefined) valueFrom.fieldRef.apiVersion ??= 'v1'
  }
  for (const probe of [container.readinessProbe, container.livenessProbe, container.startupProbe]) {
    if (probe !== undefined) setProbeDefaults(probe)
  }
}

/** `nginx`, `nginx:latest`; not `registry:5000/nginx:1.2`, nor an image by its digest. */
function isLatest(image: string): boolean {
  if (image.includes('@')) return false
  const tag = /:([^/:]+)$/.exec(image)?.[1]
  return tag === undefined || tag === 'latest'
}

function setProbeDefaults(probe: Probe): void {
  probe.timeoutSeconds ??= 1
  probe.periodSeconds ??= 10
  probe.successThreshold ??= 1
  probe.failureThreshold ??= 3
  if (probe.httpGet !== undefined) {
    probe.httpGet.path ??= '/'
    probe.httpGet.scheme ??= 'HTTP'
  }
  if (probe.grpc !== undefined) probe.grpc.service ??= ''
}

const volumesWithMode = ['secret', 'configMap', 'downwardAPI', 'projected'] as const
const readableByAll = 0o644

function setVolumeDefaults(volume: Volume): void {
  if (Object.keys(volume).length === 1) volume['emptyDir'] = {}
  for (const kind of volumesWithMode) {
    const source = volume[kind] as { defaultMode?: number } | undefined
    if (source !== undefined) source.defaultMode ??= readableByAll
  }
}

const restartPolicies = ['Always', 'OnFailure', 'Never'] as const

export function validatePodSpec(spec: PodSpec, path: string): FieldProblem[] {
  const containers = spec.containers ?? []
  const names = [...(spec.initContainers ?? []), ...containers].map(({ name }) => name)
  const { hostname, nodeName, restartPolicy = '' } = spec
  return [
    ...(containers.length === 0 ? [requiredValue(`${path}.containers`)] : []),
    ...containers.flatMap((container, i) => [
      ...validateContainer(container, `${path}.containers[${i}]`),
      ...(names.indexOf(container.name) < i + names.length - containers.length && container.name !== ''
        ? [duplicateValue(`${path}.containers[${i}].name`, container.name)]
        : []),
    ]),
    ...(spec.initContainers ?? []).flatMap((container, i) =>
      validateContainer(container, `${path}.initContainers[${i}]`),
    ),
    ...oneOf(`${path}.restartPolicy`, restartPolicy, restartPolicies),
    ...validateLabels(`${path}.nodeSelector`, spec.nodeSelector),
    ...checkOptional(`${path}.hostname`, hostname, dnsLabelProblem),
    ...checkOptional(`${path}.nodeName`, nodeName, dnsSubdomainProblem),
    ...validateVolumes(spec.volumes ?? [], `${path}.volumes`),
  ]
}

function validateVolumes(volumes: readonly Volume[], path: string): FieldProblem[] {
  const names = volumes.map(({ name }) => name)
  return volumes.flatMap(({ name }, i) => [
    ...checkRequired(`${path}[${i}].name`, name, dnsLabelProblem),
    ...checkUnique(`${path}[${i}].name`, names, i),
  ])
}

function validateContainer(container: Container, path: string): FieldProblem[] {
  const { name, image = '', ports = [], env = [] } = container
  return [
    ...checkRequired(`${path}.name`, name, dnsLabelProblem),
    ...(image === '' ? [requiredValue(`${path}.image`)] : []),
    ...(image === image.trim()
      ? []
      : [invalidValue(`${path}.image`, image, 'must not have leading or trailing whitespace')]),
    ...validatePorts(ports, `${path}.ports`),
    ...env.flatMap((variable, i) => checkRequired(`${path}.env[${i}].name`, variable.name, envNameProblem)),
  ]
}

function validatePorts(ports: readonly ContainerPort[], path: string): FieldProblem[] {
  const names = ports.map(({ name }) => name)
  return ports.flatMap(({ name, containerPort, hostPort, protocol }, i) => [
    ...checkOptional(`${path}[${i}].name`, name, portNameProblem),
    ...(name === undefined ? [] : checkUnique(`${path}[${i}].name`, names, i)),
    ...(containerPort === 0
      ? [requiredValue(`${path}[${i}].containerPort`)]
      : check(`${path}[${i}].containerPort`, containerPort, portProblem)),
    ...checkOptional(`${path}[${i}].hostPort`, hostPort, portProblem),
    ...validateProtocol(`${path}[${i}].protocol`, protocol),
  ])
}

export function validatePodTemplate(template: PodTemplateSpec): FieldProblem[] {
  const { restartPolicy } = template.spec
  return [
    ...validateLabels('spec.template.metadata.labels', template.metadata.labels),
    ...validatePodSpec(template.spec, 'spec.template.spec'),
    ...oneOf('spec.template.spec.restartPolicy', restartPolicy ?? 'Always', ['Always']),
    ...('activeDeadlineSeconds' in template.spec
      ? [
          forbiddenField(
            'spec.template.spec.activeDeadlineSeconds',
            'activeDeadlineSeconds in ReplicaSet is not Supported',
          ),
        ]
      : []),
  ]
}
