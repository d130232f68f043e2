/** The types of the options that the package has are made of the schema, and allow what it accepts and nothing else. */
import { execFile } from 'node:child_process'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { fileOptionsModule } from '../../.ci/file-options.js'
import { temporaryFolder } from '../support/folder.js'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../', import.meta.url))

/**
 * Lists of the package promise not to change. Types of any JSON have no end, and `type` of an address is made of a table: of both only the
 * names are compared.
 */
const SAME = `import type * as accepted from '${root}src/app/embed/file-options.js'
import type * as written from './file-options.js'

type Unknown = 'set' | 'type'
type Writable<T> = T extends readonly (infer One)[]
  ? Writable<One>[]
  : T extends object ? { -readonly [K in keyof T]: K extends Unknown ? unknown : Writable<T[K]> } : T
type Whole<T> = T extends readonly (infer One)[]
  ? Whole<One>[]
  : T extends object ? { -readonly [K in keyof T]-?: K extends Unknown ? unknown : Whole<T[K]> } : T
type Same<A, B> = [Writable<A>, Whole<A>, Writable<B>, Whole<B>] extends [Writable<B>, Whole<B>, Writable<A>, Whole<A>] ? true : false

export const file: Same<accepted.FileOptions, written.FileOptions> = true
export const program: Same<accepted.ProgramEntry, written.ProgramEntry> = true
export const address: Same<accepted.AddressEntry, written.AddressEntry> = true
export const shared: Same<accepted.ServerOptions, written.ServerOptions> = true
export const group: Same<accepted.GroupEntry, written.GroupEntry> = true

// @ts-expect-error: the types name mistakes
export const mistake: written.FileOptions = { limits: { cals: 1 } }
`

/** What TypeScript says of a program beside these declarations; nothing if it is right. */
async function complaints(folder: string, name: string, text: string): Promise<string> {
  writeFileSync(join(folder, name), text)
  const options = [
    '--strict',
    '--noEmit',
    '--module',
    'nodenext',
    '--target',
    'es2023',
    '--skipLibCheck',
    '--types',
    '',
  ]
  const tsc = [join(root, 'node_modules/typescript/bin/tsc'), ...options, name]
  return run(execPath, tsc, { cwd: folder }).then(
    ({ stdout }) => stdout,
    ({ stdout }: { stdout: string }) => stdout,
  )
}

t.test('the types that the build writes say the same as the schema', async (t) => {
  const folder = temporaryFolder(t)
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction')
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  const text = fileOptionsModule()
  t.notMatch(text, /^import /m, 'without zod')
  writeFileSync(join(folder, 'file-options.d.ts'), text)
  t.equal(await complaints(folder, 'same.ts', SAME), '')

  for (const [was, is] of [
    [/^ +drainDelay\?: number;$/m, ''],
    [/\bcommand: string/, 'command?: string'],
    [/^( +drainDelay\?: )number;$/m, '$1string;'],
    [/^( +drainDelay)/m, '$1OfNobody?: number;\n$1'],
  ] as const) {
    writeFileSync(join(folder, 'file-options.d.ts'), text.replace(was, is))
    t.match(
      await complaints(folder, 'same.ts', SAME),
      /same\.ts.*error.*'true' is not assignable to type 'false'/,
      `it notices a difference: ${was}`,
    )
  }
})
