/** The width of a character in pixels. */
const CHARACTER = 6.7

/** The beginning and the end of a name, as much as fits: names of pods differ at the end. */
export function shorten(text: string, width: number): string {
  const room = Math.max(3, Math.floor(width / CHARACTER))
  if (text.length <= room) return text
  const end = Math.min(6, Math.floor((room - 1) / 2))
  return `${text.slice(0, room - 1 - end)}…${text.slice(text.length - end)}`
}

/** The end of a pod's name: `whoami-79cbd4f87-f2zqg` is `f2zqg`. */
export function lastPart(name: string, width: number): string {
  return shorten(name.slice(name.lastIndexOf('-') + 1), width)
}
