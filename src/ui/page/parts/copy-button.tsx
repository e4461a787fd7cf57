import { useEffect, useState } from 'preact/hooks'

/** Copies a text. Says that it did. */
export function CopyButton({ text, what = 'command' }: { text: string; what?: string }) {
  const [said, setSaid] = useState('')
  useEffect(() => {
    if (said === '') return
    const timer = setTimeout(() => setSaid(''), 2000)
    return () => clearTimeout(timer)
  }, [said])
  const copy = () => {
    copyText(text).then(
      () => setSaid('copied'),
      () => setSaid('cannot copy'),
    )
  }
  return (
    <button type="button" class="copy" onClick={copy} aria-label={`Copy the ${what}`}>
      <span aria-live="polite">{said === '' ? 'copy' : said}</span>
    </button>
  )
}

async function copyText(text: string): Promise<void> {
  // Browsers have a clipboard for pages of this machine and for those over TLS only.
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text)
  const area = document.createElement('textarea')
  area.value = text
  document.body.append(area)
  area.select()
  const isDone = document.execCommand('copy')
  area.remove()
  if (!isDone) throw new Error('Cannot copy')
}
