import { describe, expect, it } from 'vitest'
import { decodeObject, TypeMismatchError } from './decode.ts'
import { messageNamed } from './schema.ts'
import type { JsonObject } from '../json.ts'

const service = messageNamed('core.Service')
const decode = (source: JsonObject) => decodeObject(service, { kind: 'Service', apiVersion: 'v1', ...source })

describe('decodeObject()', () => {
  it('writes the fields in the order of the API, kind first', () => {
    const { value } = decode({ status: {}, spec: { type: 'ClusterIP', ports: [] }, metadata: { name: 'a' } })
    expect(Object.keys(value)).toEqual(['kind', 'apiVersion', 'metadata', 'spec', 'status'])
  })

  it('adds messages that are always written, and drops what is empty', () => {
    const { value } = decode({ metadata: { name: 'a', labels: {} }, spec: { externalIPs: [], healthCheckNodePort: 0 } })
    expect(value).toEqual({
      kind: 'Service',
      apiVersion: 'v1',
      metadata: { name: 'a' },
      spec: {},
      status: { loadBalancer: {} },
    })
  })

  it('keeps a zero where absent means something else', () => {
    const { value } = decodeObject(messageNamed('apps.Deployment'), { spec: { replicas: 0, minReadySeconds: 0 } })
    expect(value['spec']).toMatchObject({ replicas: 0 })
    expect(value['spec']).not.toHaveProperty('minReadySeconds')
  })

  it('writes null for a list that is always written and was not given', () => {
    const { value } = decodeObject(messageNamed('discovery.EndpointSlice'), { addressType: 'IPv4' })
    expect(value).toMatchObject({ endpoints: null, ports: null })
  })

  it('names the fields that it does not know, and leaves them out', () => {
    const { value, unknown } = decode({ foo: 1, spec: { portz: 1, ports: [{ port: 80, x: true }] } })
    expect(unknown).toEqual(['foo', 'spec.portz', 'spec.ports[0].x'])
    expect(value['spec']).toEqual({ ports: [{ port: 80, targetPort: 0 }] })
  })

  it('puts the fields of inline messages into their parent', () => {
    const pod = messageNamed('core.Pod')
    const { value, unknown } = decodeObject(pod, { spec: { volumes: [{ name: 'v', emptyDir: {} }], containers: [] } })
    expect(unknown).toEqual([])
    expect(value['spec']).toEqual({ volumes: [{ name: 'v', emptyDir: {} }], containers: [] })
  })

  it.each([
    [{ ports: [{ port: 'x' }] }, 'string into Go struct field ServicePort.spec.ports.port of type int32'],
    [{ ports: [{ port: 1.5 }] }, 'number into Go struct field ServicePort.spec.ports.port of type int32'],
    [{ ports: 'q' }, 'string into Go struct field ServiceSpec.spec.ports of type []v1.ServicePort'],
    [{ selector: [] }, 'array into Go struct field ServiceSpec.spec.selector of type map[string]string'],
    [
      { ports: [{ port: 1, targetPort: true }] },
      'bool into Go struct field ServicePort.spec.ports.targetPort of type intstr.IntOrString',
    ],
  ])('refuses spec %j as Go does', (spec, complaint) => {
    expect(() => decode({ spec })).toThrow(TypeMismatchError)
    expect(() => decode({ spec })).toThrow(`json: cannot unmarshal ${complaint}`)
  })

  it('takes any key in a map, whatever it means to JavaScript', () => {
    const source = JSON.parse('{"data":{"__proto__":"a","constructor":"b"}}') as JsonObject
    const { value } = decodeObject(messageNamed('core.ConfigMap'), source)
    expect(Object.keys(value['data'] as object)).toEqual(['__proto__', 'constructor'])
  })

  it('shares nothing with what it was given', () => {
    const source = { spec: { ports: [{ port: 80 }] } }
    const { value } = decode(source)
    ;(value['spec'] as { ports: { port: number }[] }).ports[0]!.port = 81
    expect(source.spec.ports[0]!.port).toBe(80)
  })

  it('is settled: decoding again changes nothing', () => {
    const { value } = decode({ metadata: { name: 'a' }, spec: { ports: [{ port: 80, targetPort: 'http' }] } })
    expect(decodeObject(service, value).value).toEqual(value)
  })
})
