import { formerGates, otherGates, proxyGates } from './feature-gate-table.ts'
import type { GateSpec, GateStage } from './feature-gate-table.ts'

/** A gate that this program reads. */
export type ProxyGate = keyof typeof proxyGates

const allGates: ReadonlyMap<string, GateSpec> = new Map([...Object.entries(proxyGates), ...Object.entries(otherGates)])

/** Gates that set all gates of a stage, except those that are set by name. */
const stageGates: Readonly<Record<string, GateStage>> = { AllAlpha: 'alpha', AllBeta: 'beta' }

interface Gate {
  readonly stage: GateStage
  readonly default: boolean
  readonly locked: boolean
}

function parseSpec(spec: GateSpec): Gate {
  const [stage, value, locked] = spec.split(' ')
  return { stage: stage as GateStage, default: value === 'on', locked: locked !== undefined }
}

/** Whether a gate is on, given what the configuration sets. */
export function featureEnabled(set: Readonly<Record<string, boolean>>, name: ProxyGate): boolean {
  return isEnabled(set, name, parseSpec(proxyGates[name]))
}

/** All gates, for the metric: the stage of a GA feature is ''. */
export function featureStates(
  set: Readonly<Record<string, boolean>>,
): Record<string, { readonly stage: string; readonly enabled: boolean }> {
  return Object.fromEntries(
    Array.from(allGates, ([name, spec]) => {
      const gate = parseSpec(spec)
      const stage = gate.stage === 'ga' ? '' : gate.stage.toUpperCase()
      return [name, { stage, enabled: isEnabled(set, name, gate) }]
    }),
  )
}

function isEnabled(set: Readonly<Record<string, boolean>>, name: string, gate: Gate): boolean {
  const given = Object.hasOwn(set, name) ? set[name] : undefined
  if (given !== undefined || gate.locked) return given ?? gate.default
  const ofStage = Object.keys(stageGates).find((all) => stageGates[all] === gate.stage && Object.hasOwn(set, all))
  return (ofStage === undefined ? undefined : set[ofStage]) ?? gate.default
}

/** Why a gate cannot have this value, or undefined. */
export function checkFeatureGate(name: string, value: boolean): string | undefined {
  if (Object.hasOwn(stageGates, name) || formerGates.includes(name)) return undefined
  const spec = allGates.get(name)
  if (spec === undefined) return `unrecognized feature gate: ${name}`
  const gate = parseSpec(spec)
  return gate.locked && value !== gate.default
    ? `cannot set feature gate ${name} to ${value}, feature is locked to ${gate.default}`
    : undefined
}

/** A warning about an accepted gate, or undefined. */
export function warnOfFeatureGate(name: string, value: boolean): string | undefined {
  if (formerGates.includes(name)) return `Feature gate ${name}=${value} has no effect: it was removed from kube-proxy`
  const spec = allGates.get(name)
  if (spec === undefined) return undefined
  const { stage } = parseSpec(spec)
  if (stage === 'deprecated') return `Setting deprecated feature gate ${name}=${value}`
  if (stage === 'ga') return `Setting GA feature gate ${name}=${value}: the gate will be removed from Kubernetes`
  return undefined
}

/** The gates that kube-proxy reads, as `--help` lists them. */
export function describeFeatureGates(): string[] {
  return Object.entries(proxyGates).map(([name, spec]) => {
    const { stage, default: on, locked } = parseSpec(spec)
    return `${name}=true|false (${stage.toUpperCase()} - default=${on}${locked ? ', locked' : ''})`
  })
}
