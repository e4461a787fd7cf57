import { describe, expect, it } from 'vitest'
import { compileFieldSelector, parseFieldSelector } from './field-selector.ts'
import { formatRequirements, fromObject, matchesLabels, parseLabelSelector } from './label-selector.ts'

describe('parseLabelSelector()', () => {
  it.each([
    ['', {}, true],
    ['app=web', { app: 'web' }, true],
    ['app==web', { app: 'db' }, false],
    ['app!=web', {}, true],
    ['app', { app: '' }, true],
    ['!app', { app: '' }, false],
    ['app in (web, db)', { app: 'db' }, true],
    ['app notin (web,db),tier=x', { app: 'other', tier: 'x' }, true],
    ['app notin (web,db),tier=x', { app: 'web', tier: 'x' }, false],
    ['size>3', { size: '4' }, true],
    ['example.com/role=a', { 'example.com/role': 'a' }, true],
    ['constructor', {}, false],
  ])('%j on %j: %s', (selector, labels, matches) =>
    expect(matchesLabels(parseLabelSelector(selector), labels)).toBe(matches),
  )

  it.each(['app=web=db', 'a b', '=x', 'app in web', '-x=1', 'app=(x)'])('refuses %j with a 400', (selector) =>
    expect(() => parseLabelSelector(selector)).toThrow(expect.objectContaining({ code: 400 })),
  )
})

describe('fromObject()', () => {
  it('takes labels and expressions together', () => {
    const requirements = fromObject({
      matchLabels: { app: 'web' },
      matchExpressions: [
        { key: 'tier', operator: 'In', values: ['b', 'a'] },
        { key: 'old', operator: 'DoesNotExist' },
      ],
    })
    expect(formatRequirements(requirements)).toBe('app=web,tier in (a,b),!old')
    expect(matchesLabels(requirements, { app: 'web', tier: 'a' })).toBe(true)
    expect(matchesLabels(requirements, { app: 'web', tier: 'a', old: '' })).toBe(false)
  })
})

describe('compileFieldSelector()', () => {
  const fields = { name: (object: { name: string }) => object.name }
  const test = (selector: string) => compileFieldSelector(parseFieldSelector(selector), fields)

  it('compares with = == and !=, and reads escapes', () => {
    expect(test('name=a')({ name: 'a' })).toBe(true)
    expect(test('name==b')({ name: 'a' })).toBe(false)
    expect(test('name!=a')({ name: 'a' })).toBe(false)
    expect(test('name=a\\,b')({ name: 'a,b' })).toBe(true)
  })

  it('refuses a field that cannot be selected by', () => {
    expect(() => test('spec.foo=1')).toThrow('field label not supported: spec.foo')
    expect(() => test('constructor=1')).toThrow('field label not supported: constructor')
  })
})
