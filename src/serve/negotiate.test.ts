import { expect, test } from 'vitest'
import { negotiateForm, negotiateMetrics } from './negotiate.ts'

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

const protobuf = 'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited'
const isProtobuf = `${protobuf.replaceAll(';', '; ')}; escaping=underscores`
const isText = 'text/plain; version=0.0.4; charset=utf-8; escaping=underscores'

test.each([
  ['', isText],
  ['*/*', isText],
  ['text/html', isText],
  [protobuf, isProtobuf],
  [isProtobuf, isProtobuf],
  // Prometheus 2.42, without native histograms and with them.
  [
    'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
    isText,
  ],
  [
    `${protobuf},application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1`,
    isProtobuf,
  ],
  // Prometheus 3.
  [
    `${protobuf};q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1`,
    isProtobuf,
  ],
  [
    `text/plain;version=1.0.0;escaping=allow-utf-8;q=0.8,text/plain;version=0.0.4;q=0.3,${protobuf};q=0.1`,
    isText.replace('underscores', 'allow-utf-8'),
  ],
  [`${protobuf};escaping=dots`, isProtobuf.replace('underscores', 'dots')],
  [`${protobuf};escaping=else`, isProtobuf],
  [`${protobuf};q=0.5,text/plain`, isText],
  [`text/plain;q=0.5,${protobuf}`, isProtobuf],
  [protobuf.replace('delimited', 'text'), isText],
  [protobuf.replace('MetricFamily', 'Else'), isText],
  ['application/vnd.google.protobuf', isText],
  [';;,=,', isText],
])('negotiateMetrics(%j) is %s', (accept, contentType) => {
  const format = contentType.startsWith('text') ? 'text' : 'protobuf'
  expect(negotiateMetrics(accept)).toEqual({ format, contentType })
})
