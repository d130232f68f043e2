/** The Helm chart, rendered by helm. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { temporaryFolder } from './folder.js'
import { type Manifest, parseManifest, type Resource } from './kubernetes.js'
import { lacks, missing, runTool } from './tools.js'

export const CHART = fileURLToPath(new URL('../../config/helm/mcp-bridge/', import.meta.url))
export const RELEASE = 'bridge'
export const NAMESPACE = 'mcp'

/** Why tests of charts are skipped; false where they are not. */
export const noHelm: string | false = missing('kubernetes') || lacks('helm', ['version'], 'kubernetes')

export interface Rendering extends Pick<Manifest, 'mistakes'> {
  resources: Resource[]
}

/** Renders a chart with values, in JSON, as YAML is more than that. Throws what helm says if it refuses. */
export function render(t: Test, values: object, chart = CHART): Rendering {
  const { status, stdout, stderr } = helm(t, ['template', RELEASE, chart, '--namespace', NAMESPACE], values)
  if (status !== 0) throw new Error(stderr)
  return parseManifest(stdout)
}

export function helm(t: Test, args: readonly string[], values: object) {
  const file = join(temporaryFolder(t), 'values.json')
  writeFileSync(file, JSON.stringify(values))
  return runTool('kubernetes', 'helm', [...args, '--values', file])
}
