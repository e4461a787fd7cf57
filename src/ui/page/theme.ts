// Light, dark, or as the machine has it.

export const themes = ['auto', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const KEY = 'kube-proxy-theme'

export function readTheme(): Theme {
  try {
    const kept = localStorage.getItem(KEY)
    return themes.find((each) => each === kept) ?? 'auto'
  } catch {
    return 'auto'
  }
}

export function applyTheme(theme: Theme): void {
  if (theme === 'auto') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme
}

export function keepTheme(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme)
  } catch {
    // Some browsers keep nothing in private windows: it lasts as long as the page.
  }
}
