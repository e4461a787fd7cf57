import { describe, expect, it } from 'vitest'
import { configMaps } from '../resources/config-map.ts'
import { Store } from './store.ts'
import type { ConfigMap } from '../objects/small.ts'

function configMap(name: string, value = ''): ConfigMap {
  return { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name, namespace: 'default' }, data: { value } }
}

function openStore(historyLimit = 100, historyValues = 100_000) {
  const store = new Store({ historyLimit, historyValues })
  const collection = store.collection(configMaps)
  const put = (name: string, value?: string) => store.put(configMaps, `default/${name}`, configMap(name, value))
  const remove = (name: string) => store.delete(configMaps, collection.get(`default/${name}`)!)
  const names = (list: readonly { readonly object: ConfigMap }[] | undefined) =>
    list?.map(({ object }) => `${object.metadata.name}=${object.data?.['value']}`)
  return { store, collection, put, remove, names }
}

describe('Store', () => {
  it('numbers every write, in the object too', () => {
    const { store, put, remove } = openStore()
    const first = put('a')
    const second = put('b')
    expect(second.revision).toBe(first.revision + 1)
    expect(second.object.metadata.resourceVersion).toBe(String(second.revision))
    remove('a')
    expect(store.revision).toBe(second.revision + 1)
  })

  it('lists by key, whatever the order of the writes', () => {
    const { collection, put, remove, names } = openStore()
    put('b', '1')
    put('c', '1')
    put('a', '1')
    remove('c')
    expect(names(collection.list())).toEqual(['a=1', 'b=1'])
  })

  it('knows what the list was at an earlier revision', () => {
    const { store, collection, put, remove, names } = openStore()
    put('a', '1')
    put('b', '1')
    const { revision } = store
    put('a', '2')
    remove('b')
    put('c', '1')
    expect(names(collection.listAt(revision))).toEqual(['a=1', 'b=1'])
    expect(names(collection.list())).toEqual(['a=2', 'c=1'])
  })

  it('sends listeners the same changes as those that come later', () => {
    const { store, collection, put, remove } = openStore()
    const { revision } = store
    const received: unknown[] = []
    collection.listen((change) => received.push(change))
    put('a', '1')
    put('a', '2')
    remove('a')
    expect(collection.changesSince(revision)).toEqual(received)
    expect(received).toMatchObject([
      { before: undefined, after: { object: { data: { value: '1' } } } },
      { before: { object: { data: { value: '1' } } }, after: { object: { data: { value: '2' } } } },
      { before: { object: { data: { value: '2' } } }, after: undefined },
    ])
  })

  it('gives what was deleted the revision of its deletion', () => {
    const { store, collection, put, remove } = openStore()
    put('a')
    const { revision } = store
    remove('a')
    expect(collection.changesSince(revision)?.[0]?.last.object.metadata.resourceVersion).toBe(String(store.revision))
  })

  it('forgets old changes, and says so', () => {
    const { store, collection, put } = openStore(10)
    const { revision } = store
    for (let i = 0; i < 25; i++) put('a', String(i))
    expect(collection.changesSince(revision)).toBeUndefined()
    expect(collection.listAt(revision)).toBeUndefined()
    expect(collection.oldestRevision).toBeGreaterThan(revision)
    expect(collection.changesSince(collection.oldestRevision)?.length).toBeGreaterThanOrEqual(10)
  })

  it('compact() forgets what happened and keeps what is', () => {
    const { store, collection, put, names } = openStore()
    const { revision } = store
    put('a', '1')
    store.compact()
    expect(collection.changesSince(revision)).toBeUndefined()
    expect(collection.changesSince(store.revision)).toEqual([])
    expect(names(collection.list())).toEqual(['a=1'])
  })

  it('renumber() keeps the objects under new numbers, and does not know that there were others', () => {
    const { store, collection, put, names } = openStore()
    for (let i = 0; i < 20; i++) put('a', String(i))
    const received: unknown[] = []
    collection.listen((change) => received.push(change))
    const { revision } = store
    store.renumber(5)
    expect(store.revision).toBe(6)
    expect(collection.get('default/a')).toMatchObject({ revision: 6, object: { metadata: { resourceVersion: '6' } } })
    expect(names(collection.list())).toEqual(['a=19'])
    expect(collection.changesSince(revision)).toEqual([])
    expect(received).toEqual([])
  })

  it('remembers fewer changes of large objects', () => {
    const { store, collection } = openStore(10_000, 5000)
    const data = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`key-${i}`, 'value']))
    for (let i = 0; i < 200; i++) store.put(configMaps, 'default/large', { ...configMap('large'), data })
    const isKnown = (before: number) => collection.listAt(store.revision - before) !== undefined
    expect([isKnown(40), isKnown(110)]).toEqual([true, false])
    store.compact()
    expect(isKnown(0)).toBe(true)
    expect(isKnown(1)).toBe(false)
  })
})
