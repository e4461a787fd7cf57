import { expect, test } from 'vitest'
import { negotiateForm } from './negotiate.ts'

const json = { kind: 'structured', encoding: 'json', version: 'v1beta1' }
const named = 'application/json;v=v1beta1;g=config.k8s.io;as=Flagz'

test.each([
  ['', { kind: 'text' }],
  ['*/*', { kind: 'text' }],
  ['text/plain', { kind: 'text' }],
  ['text/*;q=0.5', { kind: 'text' }],
  [named, json],
  ['application/json; as=Flagz; v=v1beta1; g=config.k8s.io', json],
  [named.replace('json', 'yaml'), { ...json, encoding: 'yaml' }],
  [named.replace('v1beta1', 'v1alpha1'), { ...json, version: 'v1alpha1' }],
  [`text/html, ${named}, */*;q=0.1`, json],
  [`text/plain;q=0.5, ${named};q=0.9`, json],
  [`${named};q=0.5, text/plain`, { kind: 'text' }],
  [`${named};q=0, text/plain;q=0.1`, { kind: 'text' }],
  ['application/json', undefined],
  ['application/*', undefined],
  ['text/html', undefined],
  ['text/plain;as=Flagz', undefined],
  [named.replace('Flagz', 'Statusz'), undefined],
  [named.replace('v1beta1', 'v1'), undefined],
  [named.replace('config.k8s.io', 'apps'), undefined],
  ['text/plain;q=nonsense', undefined],
  [';;,=,', undefined],
])('negotiateForm(%j) is %o', (accept, form) => {
  expect(negotiateForm(accept, 'Flagz')).toEqual(form)
})
