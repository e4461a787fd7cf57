// An explanation for programs.

import type { Explanation } from './explanation.ts'

export function formatJson(explanation: Explanation): string {
  return `${JSON.stringify(explanation, null, 2)}\n`
}
