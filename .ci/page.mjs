/** Bundles the page of the inspector. The program contains it as text. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const source = fileURLToPath(new URL('../src/inspector/page/', import.meta.url))

/** The files of the page as text, and what went into them. */
export async function bundlePage() {
  const { outputFiles, metafile } = await build({
    entryPoints: [`${source}main.ts`, `${source}page.css`],
    outdir: 'dist',
    absWorkingDir: fileURLToPath(new URL('../', import.meta.url)),
    bundle: true,
    minify: true,
    write: false,
    platform: 'browser',
    format: 'esm',
    target: 'es2023',
    metafile: true,
    legalComments: 'none',
    logLevel: 'warning',
    // The image has no configuration of TypeScript outside src.
    tsconfigRaw: '{}',
  })
  const textOf = (ending) => outputFiles.find(({ path }) => path.endsWith(ending)).text
  const asIs = (name) => readFileSync(`${source}${name}`, 'utf8')
  const page = { html: asIs('page.html'), script: textOf('.js'), style: textOf('.css'), icon: asIs('icon.svg') }
  return { page, metafile }
}
