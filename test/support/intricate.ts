/** A server whose tools have schemas and names that APIs of models refuse: what clients call, and what it is asked. */
import { fileURLToPath } from 'node:url'
import type { Json } from '../matrix/client.js'

export const INTRICATE = {
  command: process.execPath,
  args: [fileURLToPath(new URL('../fixtures/intricate.mjs', import.meta.url))],
}

/** The ends of names of its tools for clients, the arguments of a call, and what the server is asked. */
export const CALLS: readonly [tool: RegExp, args: Json, server: Json][] = [
  [
    /tree$/,
    { root: { children: [{ name: 'b' }] } },
    { name: 'tree', args: { root: { children: [{ name: 'b' }], name: null } } },
  ],
  [/find$/, { input: { by: 'id', id: 3 } }, { name: 'find', args: { by: 'id', id: 3 } }],
  [/files_read_all_\w{6}$/, { the_path: 'a:b' }, { name: 'files.read/all', args: { 'the path': 'a:b' } }],
  [/plain$/, { n: 1 }, { name: 'plain', args: { n: 1 } }],
]

/** What the server was asked, as it says in its result. */
export const askedIn = (result: unknown) =>
  JSON.parse((result as { content: { text: string }[] }).content[0]?.text ?? '') as Json
