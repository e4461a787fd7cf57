// The HTML of the page. It contains the first snapshot, so that the page can draw without another request.

import { SNAPSHOT_ELEMENT, type Snapshot } from './protocol.ts'

export function formatShell(snapshot: Snapshot): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeText(snapshot.name)} - kube-proxy</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/page.css">
<script type="application/json" id="${SNAPSHOT_ELEMENT}">${inlineJson(snapshot)}</script>
<script type="module" src="/page.js"></script>
</head>
<body></body>
</html>
`
}

/** JSON that cannot end its HTML element. */
export function inlineJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

function escapeText(text: string): string {
  return text.replace(/[&<>"]/g, (each) => ENTITIES[each]!)
}
