// Events, in the two versions that the API has. They are kept as v1.

import { check } from '../fields/check.ts'
import { qualifiedNameProblem } from '../fields/names.ts'
import { nameRules } from '../fields/object-meta.ts'
import { invalidValue, requiredValue } from '../fields/problem.ts'
import { ageOf, nameColumn, unknown } from './columns.ts'
import { defineResource } from './resource.ts'
import type { ApiObject } from '../objects/meta.ts'
import type { Event } from '../objects/small.ts'
import type { FieldProblem } from '../fields/problem.ts'
import type { FieldReaders } from '../selectors/field-selector.ts'

const subjectFields = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'] as const

/** `involvedObject.name`, and `regarding.name` as the newer version calls it. */
const subjectReaders: FieldReaders<Event> = Object.fromEntries(
  subjectFields.flatMap((field) =>
    ['involvedObject', 'regarding'].map((owner) => [
      `${owner}.${field}`,
      ({ involvedObject }: Event) => involvedObject[field] ?? '',
    ]),
  ),
)

export const events = defineResource<Event>({
  kind: 'Event',
  shortNames: ['ev'],
  nameRule: nameRules.pathSegment,
  createOnUpdate: true,
  columns: [
    { name: 'Last Seen', cell: lastSeen },
    { name: 'Type', cell: ({ type }) => type ?? '' },
    { name: 'Reason', cell: ({ reason }) => reason ?? '' },
    { name: 'Object', cell: formatSubject },
    { name: 'Subobject', priority: 1, cell: ({ involvedObject }) => involvedObject.fieldPath ?? '' },
    { name: 'Source', priority: 1, cell: formatSource },
    { name: 'Message', cell: ({ message }) => (message ?? '').trim() },
    { name: 'First Seen', priority: 1, cell: firstSeen },
    { name: 'Count', priority: 1, cell: ({ series, count }) => series?.count ?? count ?? 1 },
    { ...nameColumn, priority: 1 },
  ],
  fields: {
    ...subjectReaders,
    reason: ({ reason }) => reason ?? '',
    reportingComponent: ({ reportingComponent }) => reportingComponent,
    reportingController: ({ reportingComponent }) => reportingComponent,
    source: ({ source, reportingComponent }) => source.component ?? reportingComponent,
    type: ({ type }) => type ?? '',
  },
  validate,
  validateUpdate: validate,
})

function validate(event: Event): FieldProblem[] {
  const { involvedObject, metadata, eventTime } = event
  const subject = involvedObject.namespace ?? ''
  const mismatch = invalidValue('involvedObject.namespace', subject, 'does not match event.namespace')
  if (eventTime === null) {
    const agrees = subject === '' ? metadata.namespace === 'default' : metadata.namespace === subject
    return agrees ? [] : [mismatch]
  }
  return [
    ...(subject === '' && !['default', 'kube-system'].includes(metadata.namespace ?? '') ? [mismatch] : []),
    ...(event.reportingComponent === ''
      ? [requiredValue('reportingComponent')]
      : check('reportingComponent', event.reportingComponent, qualifiedNameProblem)),
    ...(['reportingInstance', 'action', 'reason'] as const).flatMap((field) =>
      (event[field] ?? '') === '' ? [requiredValue(field)] : [],
    ),
  ]
}

function firstSeen({ firstTimestamp, eventTime }: Event, nowMs: number): string {
  return ageOf(firstTimestamp ?? eventTime, nowMs)
}

function lastSeen(event: Event, nowMs: number): string {
  if (event.series !== undefined) return ageOf(event.series.lastObservedTime, nowMs)
  const last = ageOf(event.lastTimestamp, nowMs)
  return last === unknown ? firstSeen(event, nowMs) : last
}

function formatSubject({ involvedObject: { kind = '', name = '' } }: Event): string {
  return name === '' ? kind.toLowerCase() : `${kind.toLowerCase()}/${name}`
}

function formatSource({ source, reportingComponent, reportingInstance }: Event): string {
  const instance = source.host ?? reportingInstance
  return `${source.component ?? reportingComponent}${instance === '' ? '' : `, ${instance}`}`
}

/** v1's names and those of events.k8s.io/v1. */
const renamed = {
  involvedObject: 'regarding',
  message: 'note',
  source: 'deprecatedSource',
  firstTimestamp: 'deprecatedFirstTimestamp',
  lastTimestamp: 'deprecatedLastTimestamp',
  count: 'deprecatedCount',
  reportingComponent: 'reportingController',
} as const

const newToOld: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(renamed).map(([old, renamedTo]) => [renamedTo, old]),
)

export const eventsV1 = defineResource<ApiObject>({
  group: 'events.k8s.io',
  kind: 'Event',
  shortNames: ['ev'],
  columns: [],
  storedAs: {
    resource: events,
    toStored: (object) => ({ ...rename(object, newToOld), apiVersion: 'v1' }),
    fromStored: (object) => ({ ...rename(object, renamed), apiVersion: 'events.k8s.io/v1' }),
  },
})

function rename(object: ApiObject, names: Readonly<Record<string, string>>): ApiObject {
  const entries = Object.entries(object).map(([key, value]) => [names[key] ?? key, value])
  return Object.fromEntries(entries) as ApiObject
}
