// System calls. The only file that knows koffi.

import { createRequire } from 'node:module'
import { constants } from 'node:os'
import type koffiModule from 'koffi'
import { KernelError } from '../lib/errors.ts'

type Koffi = typeof koffiModule

/** What a call may be given as a pointer. */
type Memory = Uint8Array | Uint32Array | Int32Array | BigUint64Array | null

interface Calls {
  socket(domain: number, type: number, protocol: number): number
  bind(fd: number, address: Memory, length: number): number
  getsockname(fd: number, address: Memory, length: Memory): number
  getpeername(fd: number, address: Memory, length: Memory): number
  setsockopt(fd: number, level: number, name: number, value: Memory, length: number): number
  send(fd: number, bytes: Memory, length: number, flags: number): number
  recvfrom(fd: number, bytes: Memory, length: number, flags: number, address: Memory, addressLength: Memory): number
  sendto(fd: number, bytes: Memory, length: number, flags: number, address: Memory, addressLength: number): number
  recv(fd: number, bytes: Memory, length: number, flags: number): number
  listen(fd: number, backlog: number): number
  accept4(fd: number, address: Memory, length: Memory, flags: number): number
  connect(fd: number, address: Memory, length: number): number
  shutdown(fd: number, how: number): number
  getsockopt(fd: number, level: number, name: number, value: Memory, length: Memory): number
  ioctl(fd: number, request: number, argument: Memory): number
  pipe2(fds: Memory, flags: number): number
  splice(from: number, fromOffset: null, to: number, toOffset: null, length: number, flags: number): number
  epoll_create1(flags: number): number
  epoll_ctl(epoll: number, op: number, fd: number, event: Memory): number
  epoll_wait(epoll: number, events: Memory, maxEvents: number, timeoutMs: number): number
  eventfd(value: number, flags: number): number
  read(fd: number, bytes: Memory, length: number): number
  write(fd: number, bytes: Memory, length: number): number
  clock_gettime(clock: number, time: Memory): number
  prlimit(pid: number, resource: number, wanted: Memory, current: Memory): number
  fcntl(fd: number, command: number, argument: number): number
  close(fd: number): number
  open(path: string, flags: number): number
  unshare(flags: number): number
  setns(fd: number, type: number): number
  flock(fd: number, operation: number): number
  prctl(option: number, value: number): number
  sethostname(name: Memory, length: number): number
  mount(source: string | null, target: string, type: string | null, flags: number, data: null): number
  signal(signal: number, handler: null): number
  execvp(program: string, argv: readonly (string | null)[]): number
  malloc_trim(kept: number): number
  madvise(start: bigint, length: bigint, advice: number): number
  syscall(number: number, command: number, attributes: Memory, length: number): number
}

const PROTOTYPES: Readonly<Record<keyof Calls, string>> = {
  socket: 'int socket(int, int, int)',
  bind: 'int bind(int, const void *, unsigned int)',
  getsockname: 'int getsockname(int, void *, void *)',
  getpeername: 'int getpeername(int, void *, void *)',
  setsockopt: 'int setsockopt(int, int, int, const void *, unsigned int)',
  send: 'long send(int, const void *, size_t, int)',
  recvfrom: 'long recvfrom(int, void *, size_t, int, void *, void *)',
  sendto: 'long sendto(int, const void *, size_t, int, const void *, unsigned int)',
  recv: 'long recv(int, void *, size_t, int)',
  listen: 'int listen(int, int)',
  accept4: 'int accept4(int, void *, void *, int)',
  connect: 'int connect(int, const void *, unsigned int)',
  shutdown: 'int shutdown(int, int)',
  getsockopt: 'int getsockopt(int, int, int, void *, void *)',
  ioctl: 'int ioctl(int, unsigned long, void *)',
  pipe2: 'int pipe2(void *, int)',
  splice: 'long splice(int, void *, int, void *, size_t, unsigned int)',
  epoll_create1: 'int epoll_create1(int)',
  epoll_ctl: 'int epoll_ctl(int, int, int, void *)',
  epoll_wait: 'int epoll_wait(int, void *, int, int)',
  eventfd: 'int eventfd(unsigned int, int)',
  read: 'long read(int, void *, size_t)',
  write: 'long write(int, const void *, size_t)',
  clock_gettime: 'int clock_gettime(int, void *)',
  prlimit: 'int prlimit(int, int, const void *, void *)',
  fcntl: 'int fcntl(int, int, long)',
  close: 'int close(int)',
  open: 'int open(const char *, int)',
  unshare: 'int unshare(int)',
  setns: 'int setns(int, int)',
  flock: 'int flock(int, int)',
  prctl: 'int prctl(int, unsigned long)',
  sethostname: 'int sethostname(const void *, size_t)',
  mount: 'int mount(const char *, const char *, const char *, unsigned long, const void *)',
  signal: 'void *signal(int, void *)',
  execvp: 'int execvp(const char *, const char **)',
  malloc_trim: 'int malloc_trim(size_t)',
  madvise: 'int madvise(uintptr_t, size_t, int)',
  syscall: 'long syscall(long, int, void *, unsigned int)',
}

type Call = (...args: unknown[]) => number

let koffi: Koffi | undefined
const calls: Partial<Record<keyof Calls, Call>> = {}

/** Loading takes some ten milliseconds, so it happens when the first call is made and not when the program starts. */
function call(name: keyof Calls): Call {
  koffi ??= loadKoffi()
  // null: the symbols of this process, which has a libc already, whatever its file is called.
  return (calls[name] ??= notingErrno(koffi, koffi.load(null).func(PROTOTYPES[name]) as Call))
}

/** Of the last call that failed. */
let errno = 0

/** Reads errno in the function that called: when it returns, V8 may compile or collect, and its own calls set errno, too. */
function notingErrno({ errno: readErrno }: Koffi, bare: Call): Call {
  return (...args) => {
    const result = bare(...args)
    if (result === -1) errno = readErrno()
    return result
  }
}

/** A release, which is of .cjs files, has koffi's native part beside them; a checkout has the npm package. */
function loadKoffi(): Koffi {
  const name = import.meta.url.endsWith('.cjs') ? `./koffi-linux-${process.arch}/index.js` : 'koffi'
  return createRequire(import.meta.url)(name) as Koffi
}

let counted: Map<string, number> | undefined

/** How often each call is made by `work`, but for those of boundCall(). For tests of what a change costs. */
export async function countCalls(work: () => void | Promise<void>): Promise<ReadonlyMap<string, number>> {
  const counts = (counted = new Map<string, number>())
  try {
    await work()
  } finally {
    counted = undefined
  }
  return counts
}

/** A system call, and how long this thread was in it. */
export interface TimedCall {
  readonly name: string
  readonly ms: number
}

const longest = { name: '', ms: 0 }

/** The longest call of this thread since this was asked last, but for those of boundCall(). */
export function takeLongestCall(): TimedCall {
  const taken = { ...longest }
  longest.ms = 0
  return taken
}

/** Another thread made the call, and this one waited for it. */
export function noteCall(name: string, ms: number): void {
  if (ms <= longest.ms) return
  longest.name = name
  longest.ms = ms
}

/** Calls libc and returns what it returns: -1 is left to the caller, which finds the reason in lastErrno(). */
export function tryCall<N extends keyof Calls>(name: N, ...args: Parameters<Calls[N]>): number {
  if (counted !== undefined) counted.set(name, (counted.get(name) ?? 0) + 1)
  const made = calls[name] ?? call(name)
  const startMs = performance.now()
  const result = made(...args)
  const ms = performance.now() - startMs
  if (ms > longest.ms) noteCall(name, ms)
  return result
}

/** The function itself, for code that calls it a million times a second. */
export function boundCall<N extends keyof Calls>(name: N): Calls[N] {
  return call(name)
}

/** Calls libc and throws a KernelError when that fails. `op` says what was attempted. */
export function mustCall<N extends keyof Calls>(op: string, name: N, ...args: Parameters<Calls[N]>): number {
  const result = tryCall(name, ...args)
  if (result === -1) throw new KernelError(op, lastErrno())
  return result
}

/** Where bytes are, for calls that are given a structure with pointers in it. They stay there while they are referred to. */
export function addressOf(bytes: Uint8Array): bigint {
  koffi ??= loadKoffi()
  return koffi.address(bytes)
}

/** The name of the error of the last call that failed, whatever has happened since: "ENOENT". */
export function lastErrno(): string {
  return errnoName(errno)
}

let names: Map<number, string> | undefined

/** The name of an error number: "ENOENT" for 2. */
export function errnoName(number: number): string {
  names ??= new Map(
    Object.entries(constants.errno)
      // EWOULDBLOCK and ENOTSUP are other names of EAGAIN and EOPNOTSUPP.
      .filter(([name]) => name !== 'EWOULDBLOCK' && name !== 'ENOTSUP')
      .map(([name, value]) => [value, name]),
  )
  return names.get(number) ?? `errno ${number}`
}
