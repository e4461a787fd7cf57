import { describe, expect, test } from 'vitest'
import { MessageQueue } from './message-queue.ts'

describe('MessageQueue', () => {
  test('receive() gives what others have sent, in order, and then nothing', () => {
    const memory = MessageQueue.createMemory()
    const [one, other, reader] = [new MessageQueue(memory), new MessageQueue(memory), new MessageQueue(memory)]
    expect(reader.receive()).toBeUndefined()
    one.send([1, 10, 11])
    other.send([2, 20])
    expect([...reader.receive()!].slice(0, 3)).toEqual([1, 10, 11])
    expect([...reader.receive()!].slice(0, 2)).toEqual([2, 20])
    expect(reader.receive()).toBeUndefined()
  })

  test('send() refuses when it is full, and loses nothing', () => {
    const queue = new MessageQueue(MessageQueue.createMemory())
    let sent = 0
    while (queue.send([sent])) sent++
    expect(sent).toBe(1024)
    for (let i = 0; i < sent; i++) expect(queue.receive()![0]).toBe(i)
    expect(queue.receive()).toBeUndefined()
    expect(queue.send([7])).toBe(true)
    expect(queue.receive()![0]).toBe(7)
  })

  test('send() gives up rather than wait for a thread that holds the lock', () => {
    const memory = MessageQueue.createMemory()
    new Int32Array(memory)[0] = 1
    expect(new MessageQueue(memory).send([1])).toBe(false)
  })
})
