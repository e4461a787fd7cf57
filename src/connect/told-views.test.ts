import { expect, test } from 'vitest'
import { aClusterIpView } from '../../test/support/cluster-ip-view.ts'
import { ToldViews } from './told-views.ts'

const [a, b, c] = ['10.96.0.1', '10.96.0.2', '10.96.0.3'].map((ip) => aClusterIpView(ip, ['10.1.0.1'])) as [
  ReturnType<typeof aClusterIpView>,
  ReturnType<typeof aClusterIpView>,
  ReturnType<typeof aClusterIpView>,
]

test('ToldViews tells of what is new, what is another, and what is gone', () => {
  const told = new ToldViews()
  const first = told.changesTo([a, b])
  expect(first).toEqual([
    { name: a.name, before: undefined, after: a },
    { name: b.name, before: undefined, after: b },
  ])
  told.note(first)
  const other = { ...b }
  expect(told.changesTo([a, other, c])).toEqual([
    { name: b.name, before: b, after: other },
    { name: c.name, before: undefined, after: c },
  ])
  expect(told.changesTo([b])).toEqual([{ name: a.name, before: a, after: undefined }])
})

test('ToldViews has nothing to tell when all is as it was told, by changes or as a whole', () => {
  const told = new ToldViews()
  told.note([{ name: a.name, before: undefined, after: a }])
  told.note([
    { name: a.name, before: a, after: undefined },
    { name: c.name, before: undefined, after: c },
  ])
  expect(told.changesTo([c])).toEqual([])
})
