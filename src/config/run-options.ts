import type { StandIns } from './modes.ts'
import type { ConfigurationChange, LoadedConfiguration } from './types.ts'
import type { Logger, LogSettings } from '../lib/log.ts'

/** One flag of the command line, for /flagz. */
export interface FlagValue {
  readonly name: string
  /** The value in effect, as pflag prints it. */
  readonly value: string
}

/** The argument of runProxy, runInitOnly and runCleanup. */
export interface RunOptions extends LoadedConfiguration {
  readonly log: Logger
  /** The settings behind `log`, which PUT /debug/flags/v changes. */
  readonly logSettings: LogSettings
  /** `--master`: the URL of the API server, whatever the kubeconfig says. Empty when not given. */
  readonly master: string
  /** `--manifests`: a folder of files in place of an API server. Empty when not given. */
  readonly manifests: string
  /** The file given with `--config`. */
  readonly configFile: string | undefined
  /**
   * The changes of the configuration file, until the signal fires; undefined without `--config`. The flags that outrank the file
   * are applied, and its logging settings are already in force.
   */
  readonly configurationChanges: ((signal: AbortSignal) => AsyncIterable<ConfigurationChange>) | undefined
  /** `--strict-proxy-mode`, `--userspace-fallback`: which modes may replace one that this machine cannot run. */
  readonly standIns: StandIns
  /** `--control-socket`: the path. Empty: by the network namespace; `none`: no socket. */
  readonly controlSocket: string
  /** `--flow-log`: where connections through Services are logged. Empty: nowhere. */
  readonly flowLog: string
  readonly flags: readonly FlagValue[]
  /** The version that is reported: `v1.37.0+ts.0.1.0.g0123456789ab`, or what `--version=vX.Y.Z` says. */
  readonly version: string
  /** Warnings about the command line, and about the file that is in force. */
  readonly warnings: () => readonly string[]
  /** Empty where it is not known. */
  readonly build: { readonly commit: string; readonly treeState: string; readonly date: string }
}
