import { describe, expect, test } from 'vitest'
import { Mailbox } from './mailbox.ts'

describe('Mailbox', () => {
  test('receive() gives what others have sent, in order, and then nothing', () => {
    const memory = Mailbox.createMemory()
    const [one, other, reader] = [new Mailbox(memory), new Mailbox(memory), new Mailbox(memory)]
    expect(reader.receive()).toBeUndefined()
    one.send([1, 10, 11])
    other.send([2, 20])
    expect([...reader.receive()!].slice(0, 3)).toEqual([1, 10, 11])
    expect([...reader.receive()!].slice(0, 2)).toEqual([2, 20])
    expect(reader.receive()).toBeUndefined()
  })

  test('send() refuses when it is full, and loses nothing', () => {
    const mailbox = new Mailbox(Mailbox.createMemory())
    let sent = 0
    while (mailbox.send([sent])) sent++
    expect(sent).toBe(1024)
    for (let i = 0; i < sent; i++) expect(mailbox.receive()![0]).toBe(i)
    expect(mailbox.receive()).toBeUndefined()
    expect(mailbox.send([7])).toBe(true)
    expect(mailbox.receive()![0]).toBe(7)
  })

  test('send() gives up rather than wait for a thread that holds the lock', () => {
    const memory = Mailbox.createMemory()
    new Int32Array(memory)[0] = 1
    expect(new Mailbox(memory).send([1])).toBe(false)
  })
})
