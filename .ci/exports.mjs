/** What sources export, for scripts that build the bridge: they run with Node.js alone. */
import { build } from 'esbuild'

/** Runs a file of TypeScript, and gives what it exports. */
export async function exportsOf(path) {
  const options = { bundle: true, write: false, platform: 'node', format: 'esm', logLevel: 'warning' }
  const { outputFiles } = await build({ entryPoints: [path], ...options })
  return await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`)
}

/** The text of a module that exports the same without computing it: JSON, and functions that give it anew each time. */
export function precomputed(exported) {
  return Object.entries(exported)
    .map(([name, value]) =>
      typeof value === 'function'
        ? `export const ${name} = () => (${JSON.stringify(value())})`
        : `export const ${name} = ${JSON.stringify(value)}`,
    )
    .join('\n')
}
