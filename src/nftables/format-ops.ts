// Operations in nft's words: what a person would type to the same end, and what `nft -f` reads.

import { formatElement, formatSetDefinition } from './format.ts'
import type { NftFamily, Op } from './types.ts'

/** A command per line; each element has its own. */
export function* formatOps(family: NftFamily, table: string, ops: Iterable<Op>): Generator<string> {
  for (const op of ops) yield* formatOp(`${family} ${table}`, op)
}

function* formatOp(where: string, op: Op): Generator<string> {
  switch (op.op) {
    case 'addTable':
      yield `add table ${where}${op.comment === undefined ? '' : ` { comment ${JSON.stringify(op.comment)}; }`}`
      break
    case 'deleteTable':
      yield `delete table ${where}`
      break
    case 'addSet':
      yield `add ${kindOf(op.set)} ${where} ${op.set.name} { ${formatSetDefinition(op.set).join('; ')}; }`
      break
    case 'deleteSet':
      // nft deletes maps under this name, too.
      yield `delete set ${where} ${op.name}`
      break
    case 'addChain': {
      const { name, hook } = op.chain
      const type =
        hook && ` { type ${hook.type} hook ${hook.hook} priority ${hook.priority}; policy ${hook.policy ?? 'accept'}; }`
      yield `add chain ${where} ${name}${type ?? ''}`
      break
    }
    case 'deleteChain':
      yield `delete chain ${where} ${op.name}`
      break
    case 'flushChain':
      yield `flush chain ${where} ${op.name}`
      break
    case 'addRule': {
      const { text, comment } = op.rule
      const verb = op.place === 'first' ? 'insert' : 'add'
      yield `${verb} rule ${where} ${op.chain} ${text}${comment === undefined ? '' : ` comment ${JSON.stringify(comment)}`}`
      break
    }
    case 'addElements':
    case 'deleteElements':
    case 'destroyElements': {
      // nft knows `destroy` only since 1.0.7.
      const verb = op.op === 'addElements' ? 'add' : 'delete'
      for (const element of op.elements) {
        yield `${verb} element ${where} ${op.set.name} { ${formatElement(op.set, element)} }`
      }
    }
  }
}

function kindOf({ data }: { readonly data: unknown }): 'map' | 'set' {
  return data === undefined ? 'set' : 'map'
}
