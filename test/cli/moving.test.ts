/** The tables of docs/moving.md have each flag of the programs, and agree with what the command line advises. */
import t from 'tap'
import { readArguments } from '../../src/command/arguments.js'
import { flagOf } from '../../src/command/flags.js'
import { insteadOf } from '../../src/command/habits.js'
import { FLAGS_OF, movingRows } from '../support/moving.js'

t.test('each flag of each program has a row', async (t) => {
  const rows = movingRows()
  t.same([...new Set(rows.map(({ program }) => program))], Object.keys(FLAGS_OF))
  for (const [program, flags] of Object.entries(FLAGS_OF)) {
    const found = rows.filter((row) => row.program === program).map(({ flag }) => flag)
    t.same([...new Set(found)].toSorted(), [...flags].toSorted(), program)
  }
})

t.test('each row has arguments that the bridge takes, members of a file, or a reason', async (t) => {
  for (const { program, flag, args, inFile, why } of movingRows()) {
    const name = `${program} ${flag}`
    t.equal([args.length > 0, inFile !== undefined, why !== undefined].filter(Boolean).length, 1, name)
    if (why !== undefined) t.match(why, /^(?:nothing: |none, because )\S/, name)
    t.doesNotThrow(() => readArguments(args, {}), name)
  }
})

t.test('a flag that is written otherwise here is answered with what to write', async (t) => {
  for (const { program, flag, args, why } of movingRows()) {
    const name = flag.replace(/^--/, '')
    // The server of a configuration, and the port of a sign-in, have answers of their own.
    if (!flag.startsWith('--') || flagOf(name) || program === 'mcporter serve') continue
    const said = insteadOf(name, undefined)
    t.ok(said, `${program} ${flag}`)
    if (why !== undefined) continue
    const [own] = args.filter((word) => /^--[a-z]/.test(word))
    if (own !== undefined) t.match(said, new RegExp(`${own}|leave it out|give the address`), `${program} ${flag}`)
  }
})
