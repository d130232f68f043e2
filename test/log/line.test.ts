/** Each event is one line of the log, whatever stands in it. */
import fc from 'fast-check'
import t from 'tap'
import { MAX_LINE } from '../../src/base/log/line.js'
import { createLog } from '../../src/base/log/log.js'
import { DECEPTIVE } from '../../src/base/texts/printable.js'

const ESCAPE = String.fromCharCode(27)
const HOSTILE = `a\nb\r${ESCAPE}[2Jc\u0085d\u202ee\u2028f\u0007g\ud800h"\\`

function logTo(format: 'json' | 'pretty', terminal = false) {
  const lines: string[] = []
  const log = createLog({ level: 'trace', format }, { terminal, write: (line) => lines.push(line) })
  return { log, lines }
}

for (const format of ['json', 'pretty'] as const) {
  t.test(`in ${format}, no value breaks a line, controls a terminal or hides text`, async (t) => {
    const { log, lines } = logTo(format)
    log.info({ event: 'call', name: HOSTILE, [HOSTILE]: { deep: [HOSTILE] } }, HOSTILE)
    log.child({ server: HOSTILE }).error({ event: 'unexpected_error', err: new Error(HOSTILE) }, 'x')
    t.equal(lines.length, 2)
    for (const line of lines) {
      t.ok(line.endsWith('\n'))
      t.notMatch(line.slice(0, -1), DECEPTIVE)
    }
    if (format === 'json')
      t.match(JSON.parse(lines[0] ?? ''), { name: HOSTILE, msg: HOSTILE }, 'programs read what was said')
  })

  t.test(`in ${format}, no line is over 16 KiB, and a truncated one says so`, async (t) => {
    const { log, lines } = logTo(format)
    log.warn({ event: 'call', method: 'm'.repeat(3_900_000), why: 'short' }, 'x')
    log.warn(
      { event: 'call', list: Array.from({ length: 50_000 }, (_, i) => i), why: '\u202e'.repeat(20_000) },
      'x'.repeat(50_000),
    )
    const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`key${i}`, `\u0000${i}`]))
    log.warn({ ...many, event: 'call' }, 'x')
    for (const line of lines) {
      t.ok(Buffer.byteLength(line) <= MAX_LINE)
      t.match(line, /truncated/)
    }
    t.match(lines[0], /3900000 characters/)
    t.match(lines[0], /short/, 'what fits stays')
  })

  t.test(`in ${format}, any text is one bounded line`, async () => {
    const { log, lines } = logTo(format, true)
    const anything = fc.dictionary(
      fc.string({ unit: 'binary' }),
      fc.oneof(fc.string({ unit: 'binary' }), fc.jsonValue()),
    )
    fc.assert(
      fc.property(anything, fc.string({ unit: 'binary', maxLength: 20_000, size: 'max' }), (fields, said) => {
        lines.length = 0
        log.info({ ...fields, event: 'call' }, said)
        const [line = ''] = lines
        // Of a terminal there are our own colours, and nothing else.
        const text = line.slice(0, -1).replaceAll(new RegExp(`${ESCAPE}\\[\\d\\dm`, 'g'), '')
        return lines.length === 1 && !DECEPTIVE.test(text) && Buffer.byteLength(text) <= MAX_LINE
      }),
      { numRuns: 300, endOnFailure: true },
    )
  })
}

t.test('the name of a tool is escaped like any other value', async (t) => {
  const { log, lines } = logTo('pretty')
  log.info({ event: 'call', method: 'tools/call', name: 'echo "x"', ms: 1.5, none: undefined }, 'call')
  t.match(lines[0], /^\d\d:\d\d:\d\d\.\d{3} INFO {2}call method=tools\/call name="echo \\"x\\"" ms=1\.5\n$/)
})
