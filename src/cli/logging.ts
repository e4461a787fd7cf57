// The program's logger, from the logging settings of the configuration and klog's old flags.

import type { KubeProxyConfiguration } from '../config/types.ts'
import { createLogger, type LogFormat, type Logger, type LogSettings, type LogSink, type Severity } from '../lib/log.ts'
import { jsonFormat } from '../lib/log-json.ts'
import { textFormat } from '../lib/log-text.ts'
import { verbosityByFile } from '../lib/log-vmodule.ts'
import { sourceFinder } from './log-sources.ts'
import { fileSink, splitSink, stderrSink } from '../lib/log-sinks.ts'

type LoggingConfiguration = KubeProxyConfiguration['logging']

export interface Logging {
  readonly log: Logger
  readonly settings: LogSettings
  /** Puts changed settings into force. */
  apply(logging: LoggingConfiguration): void
}

/** Opens the log. Until `apply` it prints text to stderr at the verbosity of the flags. */
export function openLogging(given: ReadonlyMap<string, unknown>): Logging {
  const settings: LogSettings = {
    format: formatOf('text', given),
    sink: stderrSink,
    verbosity: (given.get('v') as number | undefined) ?? 0,
    sourceOf: sourceFinder(),
    now: () => performance.timeOrigin + performance.now(),
  }
  let sinkKey = ''
  return {
    log: createLogger(settings),
    settings,
    apply(logging) {
      settings.format = formatOf(logging.format, given)
      settings.verbosity = logging.verbosity
      settings.verbosityOf = logging.vmodule.length === 0 ? undefined : verbosityByFile(logging.vmodule)
      // Files and buffers are opened once, not at every change of the verbosity.
      const key = JSON.stringify([logging.format, logging.flushFrequencyMs, logging.options])
      if (key !== sinkKey) settings.sink = sinkOf(logging, given)
      sinkKey = key
    },
  }
}

function formatOf(format: string, given: ReadonlyMap<string, unknown>): LogFormat {
  if (format === 'json') return jsonFormat
  return textFormat({
    pid: process.pid,
    skipHeaders: given.get('skip-headers') === true,
    addDirHeader: given.get('add-dir-header') === true,
  })
}

function sinkOf(logging: LoggingConfiguration, given: ReadonlyMap<string, unknown>): LogSink {
  const { splitStream, infoBufferSize } = logging.options[logging.format === 'json' ? 'json' : 'text']
  if (splitStream) return splitSink(infoBufferSize, logging.flushFrequencyMs)
  if (given.get('logtostderr') !== false) return stderrSink
  return fileSink({
    file: (given.get('log-file') as string | undefined) ?? '',
    dir: (given.get('log-dir') as string | undefined) ?? '',
    maxSizeBytes: ((given.get('log-file-max-size') as number | undefined) ?? 1800) * 1024 * 1024,
    oneOutput: given.get('one-output') === true,
    stderrFrom: stderrThreshold(given),
    skipHeading: given.get('skip-log-headers') === true || given.get('skip-headers') === true,
  })
}

function stderrThreshold(given: ReadonlyMap<string, unknown>): Severity | undefined {
  if (given.get('alsologtostderr') === true) return 'info'
  const threshold = (given.get('stderrthreshold') as number | undefined) ?? 2
  // Nothing of ours is fatal in klog's sense: the threshold FATAL keeps everything in the files.
  return (['info', 'warning', 'error'] as const)[threshold]
}
