// Where log lines go: stderr, split streams, or klog's files.

import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import type { LogSink, Severity } from './log.ts'

/** klog's old flags, which are no part of the configuration. */
export interface FileLogging {
  /** `--log-file`; empty for files in `dir`. */
  readonly file: string
  /** `--log-dir`; empty for the folder for temporary files. */
  readonly dir: string
  readonly maxSizeBytes: number
  readonly oneOutput: boolean
  /** Everything at least this severe goes to stderr as well. */
  readonly stderrFrom: Severity | undefined
  /** No heading in new files. */
  readonly skipHeading: boolean
}

const severities: readonly Severity[] = ['info', 'warning', 'error']

export const stderrSink: LogSink = (_severity, line) => {
  process.stderr.write(line)
}

/** Services are served whether or not the log is read: a closed pipe must not end the program. */
export function surviveClosedStreams(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
}

/** Errors to stderr; the rest to stdout, of which up to `bufferBytes` may wait for `flushMs`. */
export function splitSink(bufferBytes: number, flushMs: number): LogSink {
  let waiting: string[] = []
  let bytes = 0
  const flush = () => {
    if (bytes > 0) process.stdout.write(waiting.join(''))
    waiting = []
    bytes = 0
  }
  if (bufferBytes > 0) {
    setInterval(flush, flushMs).unref()
    process.on('exit', flush)
  }
  return (severity, line) => {
    if (severity === 'error') {
      process.stderr.write(line)
      return
    }
    waiting.push(line)
    bytes += Buffer.byteLength(line)
    if (bytes > bufferBytes) flush()
  }
}

/** klog's files: one file, or one per severity, of which each also holds what is more severe. */
export function fileSink(options: FileLogging): LogSink {
  const files = options.file === '' ? openFolder(options) : [lineWriter(fs.openSync(options.file, 'a', 0o644), options)]
  const stderrFrom = options.stderrFrom === undefined ? severities.length : severities.indexOf(options.stderrFrom)
  return (severity, line) => {
    const rank = severities.indexOf(severity)
    if (rank >= stderrFrom) process.stderr.write(line)
    if (files.length === 1) files[0]!(line)
    else if (options.oneOutput) files[rank]!(line)
    else for (const write of files.slice(0, rank + 1)) write(line)
  }
}

type WriteLine = (line: string) => void

function openFolder(options: FileLogging): WriteLine[] {
  const dir = options.dir === '' ? os.tmpdir() : options.dir
  const stamp = new Date().toISOString().replaceAll(/[-:]/g, '').replace('T', '-').slice(0, 15)
  return severities.map((severity) => {
    const name = `kube-proxy.${os.hostname()}.${os.userInfo().username}.log.${severity.toUpperCase()}.${stamp}.${process.pid}`
    const created = createLogFile(dir, name)
    linkNewest(dir, created.name, `kube-proxy.${severity.toUpperCase()}`)
    return lineWriter(created.descriptor, options)
  })
}

/** `kube-proxy.INFO` leads to the newest file. A folder where that cannot be done is still good for logs. */
function linkNewest(dir: string, name: string, linkName: string): void {
  const link = path.join(dir, linkName)
  try {
    fs.rmSync(link, { force: true })
    fs.symlinkSync(name, link)
  } catch {
    // The files are what matters.
  }
}

/**
 * A file that was not there. Every user may write to the folder for temporary files, and the names can be guessed: what waits
 * there under one of them, a link to some file of the system perhaps, is not ours to write to.
 */
function createLogFile(dir: string, name: string): { name: string; descriptor: number } {
  const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = fs.constants
  for (let attempt = 0; ; attempt++) {
    const unused = attempt === 0 ? name : `${name}.${attempt}`
    try {
      const flags = O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW
      return { name: unused, descriptor: fs.openSync(path.join(dir, unused), flags, 0o600) }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || attempt === MOST_ATTEMPTS) throw error
    }
  }
}

const MOST_ATTEMPTS = 100

function lineWriter(descriptor: number, options: FileLogging): WriteLine {
  let size = fs.fstatSync(descriptor).size
  // A disk that is full keeps nobody from being served.
  const write = (text: string) => {
    try {
      size += fs.writeSync(descriptor, text)
    } catch {
      // The line is lost.
    }
  }
  const heading = `Log file created at: ${new Date().toISOString()}\nRunning on machine: ${os.hostname()}\n`
  if (!options.skipHeading) write(heading)
  return (line) => {
    if (options.maxSizeBytes > 0 && size + line.length > options.maxSizeBytes) {
      fs.ftruncateSync(descriptor, 0)
      size = 0
    }
    write(line)
  }
}
