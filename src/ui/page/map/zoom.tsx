// Zooms with buttons, or with Ctrl and the wheel, and moves the map by dragging.

import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

interface Size {
  readonly width: number
  readonly height: number
}

export interface Zoom {
  readonly scale: number
  readonly viewBox: string
  readonly ref: RefObject<SVGSVGElement | null>
  zoomBy(factor: number): void
  reset(): void
}

const NEAREST = 4

export function useZoom({ width, height }: Size): Zoom {
  const [{ scale, x, y }, setView] = useState({ scale: 1, x: 0, y: 0 })
  const ref = useRef<SVGSVGElement>(null)
  const change = (next: { scale: number; x: number; y: number }) => setView(clampView(next, { width, height }))
  const zoomBy = (factor: number, at = { x: 0.5, y: 0.5 }) => {
    const nextScale = Math.min(NEAREST, Math.max(1, scale * factor))
    change({
      scale: nextScale,
      x: x + (width / scale - width / nextScale) * at.x,
      y: y + (height / scale - height / nextScale) * at.y,
    })
  }
  useEffect(() => {
    const svg = ref.current
    if (svg === null) return
    const turn = (event: WheelEvent) => {
      if (!event.ctrlKey) return
      event.preventDefault()
      const { left, top, width: w, height: h } = svg.getBoundingClientRect()
      zoomBy(event.deltaY < 0 ? 1.2 : 1 / 1.2, { x: (event.clientX - left) / w, y: (event.clientY - top) / h })
    }
    const grab = (event: PointerEvent) => {
      if (scale === 1 || event.button !== 0) return
      const from = { clientX: event.clientX, clientY: event.clientY }
      const drag = (moved: PointerEvent) =>
        change({ scale, x: x - (moved.clientX - from.clientX) / scale, y: y - (moved.clientY - from.clientY) / scale })
      const release = () => {
        removeEventListener('pointermove', drag)
        removeEventListener('pointerup', release)
      }
      addEventListener('pointermove', drag)
      addEventListener('pointerup', release)
    }
    svg.addEventListener('wheel', turn, { passive: false })
    svg.addEventListener('pointerdown', grab)
    return () => {
      svg.removeEventListener('wheel', turn)
      svg.removeEventListener('pointerdown', grab)
    }
  })
  const viewBox = `${Math.round(x)} ${Math.round(y)} ${Math.round(width / scale)} ${Math.round(height / scale)}`
  return { scale, viewBox, ref, zoomBy, reset: () => setView({ scale: 1, x: 0, y: 0 }) }
}

/** Keeps the view inside the map. */
export function clampView(
  { scale, x, y }: { scale: number; x: number; y: number },
  { width, height }: Size,
): { scale: number; x: number; y: number } {
  const most = 1 - 1 / scale
  return { scale, x: Math.min(Math.max(0, x), width * most), y: Math.min(Math.max(0, y), height * most) }
}

export function ZoomButtons({ zoom }: { zoom: Zoom }) {
  return (
    <div class="zoom switch" role="group" aria-label="Zoom">
      <button type="button" aria-label="Nearer" onClick={() => zoom.zoomBy(1.4)}>
        +
      </button>
      <button type="button" aria-label="Farther" disabled={zoom.scale === 1} onClick={() => zoom.zoomBy(1 / 1.4)}>
        −
      </button>
      {zoom.scale > 1 && (
        <button type="button" aria-label="All of it" onClick={() => zoom.reset()}>
          ⤢
        </button>
      )}
    </div>
  )
}
