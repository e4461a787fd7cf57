// From the API objects of a YAML file to what the model decides, for golden files of every mode.

import { readFileSync } from 'node:fs'
import { parseAllDocuments } from 'yaml'
import { endpointSlices } from '../../src/kube/objects/endpoint-slice.ts'
import { services } from '../../src/kube/objects/service.ts'
import type { JsonObject } from '../../src/lib/json.ts'
import { JsonReader } from '../../src/kube/encoding/json-reader.ts'
import { StringPool } from '../../src/kube/encoding/string-pool.ts'
import { ProblemLog } from '../../src/model/problems.ts'
import { ServiceModel } from '../../src/model/service-model.ts'
import type { NodeView, ServicePortView } from '../../src/model/types.ts'

/** The service ports of the file as the node sees them, in the file's order. A problem with an object fails the test. */
export function viewsFromYaml(path: string, node: NodeView): ServicePortView[] {
  const problems = new ProblemLog(({ object, message }) => {
    throw new Error(`Cannot use ${object} of ${path}: ${message}`)
  })
  const model = new ServiceModel({ node, problems, allowExternalIPs: true, startedMs: 0 })
  const reader = new JsonReader(new StringPool())
  for (const document of parseAllDocuments(readFileSync(path, 'utf8'))) {
    const object = document.toJS() as JsonObject
    if (object['kind'] === 'Service') model.setService(services.fromJson(object, reader).object)
    else model.setSlice(endpointSlices.fromJson(object, reader).object)
  }
  model.takeChanges()
  return [...model.views()]
}
