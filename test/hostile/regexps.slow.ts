/** Every regular expression of src/ is linear, because a peer may choose what it is run on. Found in the sources themselves. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import tokensOf from 'js-tokens'
import t from 'tap'
import { Backtracking } from './backtracking.js'

const source = fileURLToPath(new URL('../../src/', import.meta.url))

const found = new Map<string, string>()
for (const file of readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts')))
  for (const { type, value } of tokensOf(readFileSync(source + file, 'utf8')))
    if (type === 'RegularExpressionLiteral') found.set(value, file)

/** Texts made to keep an expression busy: a part of what it takes, then much of the same, then something else. */
function* attacks({ alphabet, sample }: Backtracking, size: number): Generator<string> {
  const characters = [...alphabet]
  const pumps = [...characters, ...characters.flatMap((one) => characters.map((other) => one + other))].slice(0, 60)
  pumps.push(sample)
  const cuts = [...new Set([0, 1, 2, 3, sample.length >> 1, sample.length - 1, sample.length])]
  for (const pump of pumps.filter((text) => text !== ''))
    for (const cut of cuts.filter((at) => at >= 0 && at <= sample.length))
      for (const end of ['', '\u0001', '\n', 'a', '@', '}'])
        yield sample.slice(0, cut) + pump.repeat(size / pump.length) + end
}

t.test('no regular expression backtracks over a text', async (t) => {
  t.ok(found.size > 60, `${found.size} expressions`)
  let tried = 0
  for (const [literal, file] of found) {
    const at = literal.lastIndexOf('/')
    const expression = new Backtracking(new RegExp(literal.slice(1, at), literal.slice(at + 1)))
    if (expression.linear) continue
    tried++
    const most = 200_000
    let worst = { ratio: 0, text: '' }
    const long = attacks(expression, 320)
    for (const text of attacks(expression, 80)) {
      const longer = long.next().value as string
      const few = expression.stepsOn(text, most)
      // So few that each character has been looked at some times at most.
      if (few < 12 * text.length) continue
      const ratio = expression.stepsOn(longer, most) / few
      if (ratio > worst.ratio) worst = { ratio, text: text.slice(0, 40) }
    }
    t.ok(
      worst.ratio < 8,
      `${file}: ${literal} (four times the text, ${worst.ratio.toFixed(1)} times the steps, ${JSON.stringify(worst.text)})`,
    )
  }
  t.ok(tried > 40, `${tried} of them have been tried on texts`)
})
