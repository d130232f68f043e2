/** The types of the options are made of the schema, and allow nothing that it does not. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import type * as z from 'zod'
import { fileOptionsModule } from '../../.ci/file-options.js'
import type { FileOptions } from '../../src/app/embed/options.js'
import type { fileSchema } from '../../src/config/schema/schema.js'

type Input = z.input<typeof fileSchema>
/** Options whose types can be compared without following those of JSON, which have no end. */
type Plain = 'timeouts' | 'compat' | 'log'
/** Of the limits, all but a list, which the types promise not to change. */
type Limits<T extends { limits?: object | undefined }> = { limits: Omit<NonNullable<T['limits']>, 'tools'> }

t.test('the file is fresh (npm run schema writes it)', async (t) => {
  const file = readFileSync(new URL('../../src/app/embed/file-options.ts', import.meta.url), 'utf8')
  // What a formatter changes.
  const plain = (text: string) => text.replace(/[\s|()'"\\]/g, '')
  // Without the texts, which are long.
  t.ok(plain(file) === plain(fileOptionsModule()), 'npm run schema')
})

t.test('the schema accepts what the types allow', async (t) => {
  const plain = (options: Pick<FileOptions, Plain>): Pick<Input, Plain> => options
  const bounded = (options: Limits<FileOptions>): Limits<Input> => options
  const key = (name: keyof FileOptions): keyof Input => name
  const back = (name: keyof Input): keyof FileOptions => name
  t.same(plain({ log: { level: 'warn' } }), { log: { level: 'warn' } })
  t.same(bounded({ limits: { calls: 1 } }), { limits: { calls: 1 } })
  t.equal(back(key('mcpServers')), 'mcpServers')
  // @ts-expect-error: the types name mistakes
  bounded({ limits: { cals: 1 } })
})
