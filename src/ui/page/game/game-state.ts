// The points of the game.

import { levels, POINTS } from './levels.ts'

export interface Score {
  readonly hasHint: boolean
  readonly wrong: number
  readonly isSolved: boolean
}

export interface Game {
  /** The level that is played; null: none yet. Behind the last one: the end. */
  readonly at: number | null
  readonly scores: readonly Score[]
}

export function begin(): Game {
  return { at: null, scores: levels.map(() => ({ hasHint: false, wrong: 0, isSolved: false })) }
}

export function scoreOf({ scores }: Game, at: number): Score {
  return scores[at]!
}

export const takeHint = (game: Game): Game => change(game, () => ({ hasHint: true }))
export const addWrong = (game: Game): Game => change(game, ({ wrong }) => ({ wrong: wrong + 1 }))
export const solve = (game: Game): Game => change(game, () => ({ isSolved: true }))

/** A solved failure costs nobody points. */
export function totalOf({ scores }: Game): number {
  return scores
    .filter(({ isSolved }) => isSolved)
    .reduce((sum, { hasHint, wrong }) => {
      return sum + Math.max(0, POINTS.solved - (hasHint ? POINTS.hint : 0) - wrong * POINTS.wrong)
    }, 0)
}

function change({ at, scores }: Game, to: (score: Score) => Partial<Score>): Game {
  return { at, scores: scores.map((score, i) => (i === at ? { ...score, ...to(score) } : score)) }
}
