export interface DebianPackage {
  readonly name: string
  readonly version: string
  readonly file: string
  readonly sha256: string
  readonly control: string
}
export function fetchDebian(
  architecture: string,
  names: readonly string[],
  alone?: readonly string[],
  release?: string,
): DebianPackage[]
export function unpackDebian(fetched: DebianPackage): string
