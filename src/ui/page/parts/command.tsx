import { CopyButton } from './copy-button.tsx'

/** A command as it is typed at a terminal, to be copied. */
export function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <pre tabIndex={0} role="group" aria-label="The same at a terminal">
        {text.split('\n').map((line) => (
          <code key={line}>{line}</code>
        ))}
      </pre>
      <CopyButton text={text} />
    </div>
  )
}
