/** The shells for which there is completion. */
export const SHELLS = ['bash', 'zsh', 'fish', 'powershell'] as const

export type CompletedShell = (typeof SHELLS)[number]

export function isShell(word: string): word is CompletedShell {
  return SHELLS.some((shell) => shell === word)
}
