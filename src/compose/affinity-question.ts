// The question `affinity`: which backend a client stays with, in a mode where the proxy has the affinity entries.

import type { AffinityAnswer } from '../serve/control/affinity.ts'
import { allowArguments, argument, QuestionError, type Question } from '../serve/control/questions.ts'
import { canonicalIp, ipFamily, joinHostPort } from '../lib/ip.ts'
import type { ServicePortView } from '../model/types.ts'
import type { RunningMode } from '../modes/contract.ts'
import type { FamilyPipeline } from '../reconcile/family-pipeline.ts'

export interface AffinityQuestionOptions {
  readonly pipelines: readonly Pick<FamilyPipeline, 'node' | 'model'>[]
  readonly remembered: RunningMode['remembered']
}

export function affinityQuestion({ pipelines, remembered }: AffinityQuestionOptions): Question {
  return {
    name: 'affinity',
    what: 'which backend a client gets again, in userspace mode; port=NAMESPACE/NAME[:PORT], client=ADDRESS, list=Cluster or Local',
    async answer(query): Promise<AffinityAnswer> {
      allowArguments(query, 'port', 'client', 'list')
      const [name, list = 'Cluster'] = [argument(query, 'port'), argument(query, 'list')]
      const client = canonicalIp(argument(query, 'client') ?? '')
      if (client === undefined) {
        throw new QuestionError(`Cannot use client ${JSON.stringify(query.get('client'))}: must be an IP address`)
      }
      if (list !== 'Cluster' && list !== 'Local') {
        throw new QuestionError(`Cannot use list ${JSON.stringify(list)}: must be Cluster or Local`)
      }
      if (remembered === undefined)
        throw new QuestionError('In this mode the kernel has the affinity entries, not the proxy')
      const family = ipFamily(client)!
      const view = viewNamed(pipelines.find(({ node }) => node.family === family)?.model.views() ?? [], name)
      if (view === undefined)
        throw new QuestionError(`Cannot find service port ${JSON.stringify(name)} in IPv${family}`)
      const found = await remembered({ family, view, list, client })
      return { remembered: found.map(({ ip, port, leftMs }) => ({ backend: joinHostPort(ip, port), leftMs })) }
    },
  }
}

function viewNamed(views: Iterable<ServicePortView>, name: string | undefined): ServicePortView | undefined {
  for (const view of views) if (view.name === name) return view
  return undefined
}
