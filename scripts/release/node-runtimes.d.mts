export const imageNode: string
export const testedNodes: readonly string[]
export function nodeRuntime(version: string, processor?: string): string
