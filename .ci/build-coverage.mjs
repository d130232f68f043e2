/**
 * Builds as build.mjs does, except that dist/main.js runs the sources: then coverage sees them in the processes that tests start,
 * too. A source map of the bundle would not do: c8 counts lines of functions that never ran.
 */
import './build.mjs'
import { writeFileSync } from 'node:fs'
import { bundlePage } from './page.mjs'

const { page } = await bundlePage()
const module = `export const PAGE = ${JSON.stringify(page)}`

// The sources have no page of the inspector: the build puts it there.
writeFileSync(
  'dist/page-hook.js',
  `const page = { format: 'module', shortCircuit: true, source: ${JSON.stringify(module)} }
export const load = (url, context, next) => (url.includes('/src/inspector/page.ts') ? page : next(url, context))
`,
)
writeFileSync(
  'dist/main.js',
  `import { register as registerHooks } from 'node:module'
import { register } from 'tsx/esm/api'

register()
registerHooks('./page-hook.js', import.meta.url)
await import('../src/main.ts')
`,
)
