// Objects as the rows that `kubectl get` prints.

import type { ApiObject } from '../objects/meta.ts'
import type { Column, Resource } from '../resources/resource.ts'

export type IncludeObject = 'Metadata' | 'Object' | 'None'

export interface TableOptions {
  readonly nowMs: number
  readonly include: IncludeObject
  /** The rows of a watch say only once what their columns are. */
  readonly withColumns: boolean
  readonly metadata: object
}

export function tableOf(resource: Resource, objects: readonly ApiObject[], options: TableOptions): object {
  const columns = (resource.storedAs?.resource ?? resource).columns
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: options.metadata,
    columnDefinitions: options.withColumns ? columns.map(columnDefinition) : null,
    rows: objects.map((object) => formatRow(columns, object, options)),
  }
}

function columnDefinition({ name, type, format, priority }: Column<ApiObject>): object {
  return { name, type: type ?? 'string', format: format ?? '', description: '', priority: priority ?? 0 }
}

function formatRow(columns: readonly Column<ApiObject>[], object: ApiObject, options: TableOptions): object {
  const cells = columns.map((column) => column.cell(object, options.nowMs))
  switch (options.include) {
    case 'None':
      return { cells, object: null }
    case 'Object':
      return { cells, object }
    case 'Metadata':
      return { cells, object: formatMetadata(object) }
  }
}

/** An object without its spec and status, for clients that only look at names, labels and owners. */
export function formatMetadata({ metadata }: ApiObject): object {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata }
}
