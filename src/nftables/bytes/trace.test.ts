import { describe, expect, it } from 'vitest'
import { messagesOf } from '../../netlink/message.ts'
import { decodeTrace } from './trace.ts'

/** As Linux 6.18 sent them: a packet to 10.3.0.10:80 that is translated to 127.0.0.1:8080, and one that is refused. */
const recorded = {
  jump: 'b8000000110a000000000000000000000200000008000f0000000002080004000000000308000600da5f6f07080002006f757400090001006e617432000000000c00030000000000000000031400050008000100fffffffd080002007376630008000c000000000106000d0003040000180008004500003c235940004006034a0a03000a0a03000a18000900afc80050c251917d00000000a002ffd7144800000800150000000008050013000000000008001200e6491d59',
  dnat: '60000000110a000000000000000000000200000008000f0000000002080004000000000308000600da5f6f070800020073766300090001006e617432000000000c00030000000000000000040c000500080001000000000108000e0000004000',
  inet: 'bc000000110a000000000000000000000100000008000f0000000002080004000000000308000600da5f6f07080002006f75740007000100667700000c00030000000000000000020c00050008000100ffffffff08000e000000400008000c000000000106000d0003040000180008004500003c2359400040068e550a03000a7f00000118000900afc81f90c251917d00000000a002ffd7893c00000800150000000008050013000000000008001200e6491d590800140000000120',
  endOfChain:
    '48000000110a000000000000000000000100000008000f00000000020800040000000003080006002e0b0ff8080002006f75740007000100667700000c00050008000100ffffffff',
  policy:
    '4c000000110a000000000000000000000100000008000f0000000002080004000000000108000600da5f6f07080002006f7574000700010066770000080010000000000108000e0000004000',
  reject6:
    'ac000000110a000000000000000000000a00000008000f000000000a08000400000000030800060008177a93080002006f757400090001006e617436000000000c00030000000000000000020c000500080001000000000008000c000000000106000d00030400002c000800600644f900280640000000000000000000000000000000010000000000000000000000000000000118000900afc8005147bd11b900000000a002ffc400300000',
}

function decode(hex: string) {
  const [message] = messagesOf(new Uint8Array(Buffer.from(hex, 'hex')))
  return decodeTrace(message!)
}

const id = 0xda5f6f07
const client = { source: '10.3.0.10', sourcePort: 45_000 }

describe('decodeTrace()', () => {
  it.each([
    [
      'jump',
      {
        id,
        family: 2,
        table: 'nat2',
        chain: 'out',
        type: 'rule',
        handle: 3n,
        verdict: 'jump svc',
        packet: { ...client, destination: '10.3.0.10', destinationPort: 80 },
      },
    ],
    ['dnat', { id, family: 2, table: 'nat2', chain: 'svc', type: 'rule', handle: 4n, verdict: 'accept', mark: 0x4000 }],
    [
      'inet',
      {
        id,
        family: 1,
        table: 'fw',
        chain: 'out',
        type: 'rule',
        handle: 2n,
        verdict: 'continue',
        mark: 0x4000,
        packet: { ...client, destination: '127.0.0.1', destinationPort: 8080 },
      },
    ],
    ['endOfChain', { id: 0x2e0b0ff8, family: 1, table: 'fw', chain: 'out', type: 'rule', verdict: 'continue' }],
    ['policy', { id, family: 1, table: 'fw', chain: 'out', type: 'policy', policy: 'accept', mark: 0x4000 }],
    [
      'reject6',
      {
        id: 0x08177a93,
        family: 10,
        table: 'nat6',
        chain: 'out',
        type: 'rule',
        handle: 2n,
        verdict: 'drop',
        packet: { source: '::1', sourcePort: 45_000, destination: '::1', destinationPort: 81 },
      },
    ],
  ] as const)('tells %s', (name, event) => {
    expect(decode(recorded[name])).toEqual(event)
  })

  it('never throws at what is cut off, and knows nothing of other messages', () => {
    const bytes = Buffer.from(recorded.jump, 'hex')
    for (let length = 20; length < bytes.length; length++) {
      const cut = Uint8Array.from(bytes.subarray(0, length))
      new DataView(cut.buffer).setUint32(0, length, true)
      for (const message of messagesOf(cut)) expect(() => decodeTrace(message)).not.toThrow()
    }
    const other = Uint8Array.from(bytes)
    other[4] = 0
    expect(decodeTrace([...messagesOf(other)][0]!)).toBeUndefined()
  })
})
