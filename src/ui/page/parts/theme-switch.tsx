import { useState } from 'preact/hooks'
import { applyTheme, keepTheme, readTheme, themes, type Theme } from '../theme.ts'
import { Select } from './select.tsx'

const words: Readonly<Record<Theme, string>> = { auto: 'Auto', light: 'Light', dark: 'Dark' }

export function ThemeSwitch() {
  const [theme, setTheme] = useState(readTheme)
  const choose = (next: Theme) => {
    applyTheme(next)
    keepTheme(next)
    setTheme(next)
  }
  return (
    <Select
      label="Theme"
      isLabelHidden
      class="theme"
      value={theme}
      onChoose={(next) => choose(next as Theme)}
      options={themes.map((each) => [each, words[each]])}
    />
  )
}
