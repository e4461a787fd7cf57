import { describe, expect, it } from 'vitest'
import { parseRoute } from '../route.ts'
import { parsePick, parseSelection, selectRoute } from './selection.ts'

describe('a click on the map', () => {
  it('chooses what was clicked on', () => {
    const { query } = parseRoute(selectRoute({ kind: 'pod', id: 'default/a' }, null))
    expect(parseSelection(query)).toEqual({ kind: 'pod', id: 'default/a' })
  })

  it('puts together a packet', () => {
    expect(selectRoute({ kind: 'pod', id: 'default/a' }, 'from')).toBe('#/packet?from=default%2Fa')
    expect(selectRoute({ kind: 'node', id: 'node-2' }, 'from')).toBe('#/packet?from=node&node=node-2')
    expect(selectRoute({ kind: 'outside', id: 'machine' }, 'from')).toBe('#/packet?from=outside')
    expect(selectRoute({ kind: 'service', id: 'default/w' }, 'to')).toBe('#/packet?to=default%2Fw')
  })

  it('on something that cannot be that end goes on choosing', () => {
    const route = parseRoute(selectRoute({ kind: 'service', id: 'default/w' }, 'from'))
    expect([route.view, parsePick(route.query)]).toEqual(['map', 'from'])
  })
})
