// Columns that many kinds share, and how their cells are formatted.

import { formatAge, parseTime } from '../time.ts'
import { formatRequirements, fromMap, fromObject } from '../selectors/label-selector.ts'
import type { ApiObject, LabelSelector } from '../objects/meta.ts'
import type { Container } from '../objects/pod.ts'
import type { Column } from './resource.ts'

export const none = '<none>'
export const unknown = '<unknown>'

export const nameColumn: Column<ApiObject> = {
  name: 'Name',
  format: 'name',
  cell: (object) => object.metadata.name,
}

export const ageColumn: Column<ApiObject> = {
  name: 'Age',
  cell: (object, nowMs) => ageOf(object.metadata.creationTimestamp, nowMs),
}

export function ageOf(time: string | null | undefined, nowMs: number): string {
  const ms = typeof time === 'string' ? parseTime(time) : undefined
  return ms === undefined ? unknown : formatAge(nowMs - ms)
}

export function formatLabels(labels: Readonly<Record<string, string>> | undefined): string {
  const text = formatRequirements(fromMap(labels ?? {}))
  return text === '' ? none : text
}

export function formatSelector(selector: LabelSelector): string {
  const text = formatRequirements(fromObject(selector))
  return text === '' ? none : text
}

interface HasTemplate extends ApiObject {
  spec: { template?: { spec: { containers: Container[] } } }
}

export const containersColumn: Column<HasTemplate> = {
  name: 'Containers',
  priority: 1,
  cell: (object) => (object.spec.template?.spec.containers ?? []).map(({ name }) => name).join(','),
}

export const imagesColumn: Column<HasTemplate> = {
  name: 'Images',
  priority: 1,
  cell: (object) => (object.spec.template?.spec.containers ?? []).map(({ image }) => image ?? '').join(','),
}
