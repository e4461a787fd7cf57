import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeConfiguration } from './decode.ts'
import { applyDefaults } from './defaults.ts'
import { encodeConfiguration } from './encode.ts'
import type { FieldTable } from './field-kinds.ts'
import { nameInMemory } from './field-kinds.ts'
import { configurationFields } from './fields.ts'
import { settle } from './settle.ts'
import type { KubeProxyConfiguration } from './types.ts'
import { runs } from '../../test/support/runs.ts'

const roundTrip = (config: KubeProxyConfiguration) =>
  settle(applyDefaults(decodeConfiguration(encodeConfiguration(config)).values))

test('encodeConfiguration() writes the defaults as kube-proxy 1.37 does, byte for byte', () => {
  const written = readFileSync(new URL('testdata/defaults.golden', import.meta.url), 'utf8')
  expect(encodeConfiguration(settle(applyDefaults({})))).toBe(written)
})

test('encodeConfiguration() keeps the periods and masqueradeAll of the active mode only', () => {
  const config = settle(applyDefaults({ mode: 'nftables', nftables: { masqueradeAll: true } }))
  const text = encodeConfiguration(config)
  expect(text).toContain(
    'iptables:\n  localhostNodePorts: true\n  masqueradeAll: false\n  masqueradeBit: 14\n  minSyncPeriod: 0s\n',
  )
  expect(text).toContain(
    'nftables:\n  masqueradeAll: true\n  masqueradeBit: 14\n  minSyncPeriod: 1s\n  syncPeriod: 30s\n',
  )
})

test('encodeConfiguration() writes lists, gates and patterns in the form of Go', () => {
  const config = settle(
    applyDefaults({
      nodePortAddresses: ['primary', '::/0'],
      featureGates: { B: true, A: false },
      logging: { vmodule: [{ filePattern: 'a*', verbosity: 4 }] },
      conntrack: { max: 5 },
    }),
  )
  const text = encodeConfiguration(config)
  expect(text).toContain('featureGates:\n  A: false\n  B: true\n')
  expect(text).toContain('nodePortAddresses:\n- primary\n- ::/0\n')
  expect(text).toContain('  vmodule:\n  - filePattern: a*\n    verbosity: 4\n')
  expect(text).toContain('conntrack:\n  max: 5\n')
})

/** Arbitrary values for a table, as a file could set them. */
function arbitraryOf(table: FieldTable): fc.Arbitrary<Record<string, unknown>> {
  const shape: Record<string, fc.Arbitrary<unknown>> = {}
  for (const [name, field] of Object.entries(table)) shape[nameInMemory(name, field)] = arbitraryField(field)
  return fc.record(shape, { requiredKeys: [] })
}

function arbitraryField(field: FieldTable[string]): fc.Arbitrary<unknown> {
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom('null', 'yes', '1', '0s', '<<', '- x'),
  )
  switch (field.kind) {
    case 'object':
      return arbitraryOf(field.fields)
    case 'string':
      return text
    case 'bool':
      return fc.boolean()
    case 'bool|annotated':
      return fc.oneof(fc.boolean(), fc.constant('annotated'))
    case 'float':
      return fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0)
    case 'duration':
    case 'duration|nanos':
      return fc.integer({ min: -(2 ** 43), max: 2 ** 43 })
    case 'strings':
      return fc.array(text.filter((each) => !each.includes(',')))
    case 'bools':
      return fc.dictionary(
        text.filter((key) => key !== '<<' && key !== '__proto__'),
        fc.boolean(),
      )
    case 'vmodule':
      return fc.array(fc.record({ filePattern: text, verbosity: fc.nat() }))
    case 'int32':
    case 'int32?':
      return fc.integer()
    case 'uint32':
    case 'quantity':
      return fc.nat()
  }
}

test('decodeConfiguration() reads back whatever encodeConfiguration() wrote', () => {
  fc.assert(
    fc.property(
      arbitraryOf(configurationFields),
      fc.constantFrom('', 'iptables', 'ipvs', 'nftables'),
      (values, mode) => {
        // What defaults change (zeros, addresses without a port) has changed after the first round.
        const config = roundTrip(settle(applyDefaults({ ...values, mode })))
        expect(roundTrip(config)).toEqual(config)
      },
    ),
    runs(60),
  )
})

test('decodeConfiguration() never throws anything but a ConfigError, whatever the file holds', () => {
  const line = fc.oneof(
    fc.string(),
    fc.constantFrom('mode: &a [*a]', 'nftables:', '  <<: {', '- ', '? x', '!!binary x', '%YAML 9'),
  )
  fc.assert(
    fc.property(fc.array(line), (lines) => {
      const text = `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n${lines.join('\n')}`
      try {
        decodeConfiguration(text)
      } catch (error) {
        expect((error as Error).name).toBe('ConfigError')
      }
    }),
    runs(300),
  )
})
