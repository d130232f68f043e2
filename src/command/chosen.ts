/** Describes the choice of tools, prompts and resources for `check`. */

import type { Issue } from '../config/settings.js'
import { hiddenOverrides, type ServerChoice } from '../middle/policy/choice/left.js'
import { choosing } from '../middle/policy/choice/seen.js'

/** Whether clients see only a part. */
export function isChoice({ tools, prompts, resources }: ServerChoice): boolean {
  return (choosing(tools) ?? prompts ?? resources) !== undefined
}

/** The choice in one line. */
export function inWords({ tools, prompts, resources }: ServerChoice): string {
  const parts = Object.entries({ tools, prompts, resources }).flatMap(([option, rules]) => {
    if (!rules) return []
    const { allow, deny } = rules
    const allowed = allow === undefined ? `all ${option}` : `${option} ${allow.join(', ') || '(none)'}`
    return deny.length > 0 ? `${allowed} but not ${deny.join(', ')}` : allowed
  })
  const rewritten = Object.entries(tools?.override ?? {}).map(([name, { name: shown }]) =>
    shown === undefined ? name : `${name} as ${shown}`,
  )
  return [...parts, ...(rewritten.length > 0 ? [`rewritten: ${rewritten.join(', ')}`] : [])].join('; ')
}

/** The settings without effect. */
export function ineffective(server: string, choice: ServerChoice): Issue[] {
  return hiddenOverrides(choice).map((name) => ({
    path: `mcpServers.${server}.tools.override.${name}`,
    message: 'has no effect: "allow" or "deny" hides this tool',
  }))
}
