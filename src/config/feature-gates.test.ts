import { expect, test } from 'vitest'
import { checkFeatureGate, describeFeatureGates, featureEnabled, warnOfFeatureGate } from './feature-gates.ts'

test('featureEnabled() gives the default of a gate that is not set', () => {
  expect(featureEnabled({}, 'NFTablesNetlink')).toBe(true)
  expect(featureEnabled({}, 'KubeProxyNFTablesLocalhostNodePorts')).toBe(false)
})

test('featureEnabled() gives what is set, before what AllAlpha or AllBeta say', () => {
  expect(featureEnabled({ AllAlpha: true }, 'KubeProxyNFTablesLocalhostNodePorts')).toBe(true)
  expect(
    featureEnabled(
      { AllAlpha: true, KubeProxyNFTablesLocalhostNodePorts: false },
      'KubeProxyNFTablesLocalhostNodePorts',
    ),
  ).toBe(false)
  expect(featureEnabled({ AllBeta: false }, 'NFTablesNetlink')).toBe(false)
  expect(featureEnabled({ AllBeta: false }, 'MultiCIDRServiceAllocator')).toBe(true)
})

test('checkFeatureGate() refuses unknown gates and locked gates set otherwise', () => {
  expect(checkFeatureGate('NoSuchGate', true)).toBe('unrecognized feature gate: NoSuchGate')
  expect(checkFeatureGate('constructor', true)).toBe('unrecognized feature gate: constructor')
  expect(checkFeatureGate('PreferSameTrafficDistribution', false)).toBe(
    'cannot set feature gate PreferSameTrafficDistribution to false, feature is locked to true',
  )
  expect(checkFeatureGate('PreferSameTrafficDistribution', true)).toBeUndefined()
})

test("checkFeatureGate() accepts other components' gates and those of old kube-proxies", () => {
  expect(checkFeatureGate('AllowParsingUserUIDFromCertAuth', true)).toBeUndefined()
  expect(checkFeatureGate('SupportIPVSProxyMode', true)).toBeUndefined()
  expect(checkFeatureGate('AllAlpha', true)).toBeUndefined()
  // Of the API client, which kube-proxy takes with its own.
  expect(checkFeatureGate('WatchListClient', false)).toBeUndefined()
  expect(checkFeatureGate('InOrderInformers', false)).toMatch(/locked/)
  // Of 1.36, no longer in 1.37.
  expect(checkFeatureGate('GangScheduling', true)).toBeUndefined()
})

test('warnOfFeatureGate() speaks of deprecated and former gates only', () => {
  expect(warnOfFeatureGate('KubeProxyIPVS', true)).toMatch(/deprecated/)
  expect(warnOfFeatureGate('SupportIPVSProxyMode', true)).toMatch(/no effect/)
  expect(warnOfFeatureGate('NFTablesNetlink', true)).toBeUndefined()
})

test('describeFeatureGates() lists a gate with its stage and default', () => {
  expect(describeFeatureGates()).toContain('NFTablesNetlink=true|false (BETA - default=true)')
})
