import { asBytes } from '../lib/ip.ts'
import { describe, expect, it } from 'vitest'
import { protocolFilter, writeFlowMessage } from '../conntrack/messages.ts'
import { conntrackVocabulary } from '../conntrack/vocabulary.ts'
import { nftablesVocabulary } from '../nftables/bytes/vocabulary.ts'
import { describeDatagram } from './debug.ts'
import { writeBatch } from '../nftables/bytes/batch.ts'
import { NLM_F_DUMP } from './uapi/netlink.ts'
import { Writer } from './writer.ts'
import { makeSet } from '../nftables/make-set.ts'

const set = makeSet('cluster-ips', ['ipv4_addr'])

describe('describeDatagram()', () => {
  it('says what is in a transaction', () => {
    const writer = new Writer()
    writeBatch(writer, { family: 'ip', table: 'kube-proxy' }, [
      { op: 'addElements', set, elements: [{ key: asBytes('\n\0\0\x01') }] },
      {
        op: 'addRule',
        chain: 'c',
        rule: { text: '', comment: undefined, expressions: [{ kind: 'verdict', code: 'drop' }] },
      },
    ])
    expect(describeDatagram(writer.written(), nftablesVocabulary)).toEqual([
      'batchBegin seq=0',
      'newElements seq=0 create {"table":"kube-proxy","set":"cluster-ips","elements":[{"key":"0x0a000001"}]}',
      'newRule seq=0 ack,create,append {"table":"kube-proxy","chain":"c","expressions":[{"kind":"verdict","code":"drop"}]}',
      'batchEnd seq=0',
    ])
  })

  it('says what is asked of the connection tracker', () => {
    const writer = new Writer()
    writeFlowMessage(writer, { message: 'get', family: 4, flags: NLM_F_DUMP }, protocolFilter(17))
    expect(describeDatagram(writer.written(), conntrackVocabulary)[0]).toMatch(
      /^getFlow seq=0 dump \{"original":\{"protocol":\{"number":17/,
    )
  })

  it('gives the length of what it does not know', () => {
    const writer = new Writer()
    writer.beginMessage(24, 0)
    writer.raw(asBytes('abcd'))
    writer.endMessage()
    expect(describeDatagram(writer.written())).toEqual(['message 24 seq=0 {"bytes":4}'])
    expect(describeDatagram(writer.written(), nftablesVocabulary)).toEqual(['message 24 seq=0 {"bytes":4}'])
  })
})
