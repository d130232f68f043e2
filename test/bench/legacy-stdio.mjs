/** The least that a legacy server on a pipe can be: a line in, a line out. */
import { answerTo } from './answers.mjs'

/** Longer answers are sent as the bytes they are kept in. */
const LONG = 64 * 1024
let rest = ''

process.stdin.setEncoding('utf8')
process.stdin.on('data', (/** @type {string} */ piece) => {
  const lines = (rest + piece).split('\n')
  rest = lines.pop() ?? ''
  let out = ''
  for (const line of lines) {
    const said = answerTo(line, 'legacy')
    if (!said) continue
    if (said.bytes.length < LONG) {
      out += `${said.front + said.rest}\n`
    } else {
      process.stdout.write(out + said.front)
      process.stdout.write(said.bytes)
      out = '\n'
    }
  }
  if (out !== '') process.stdout.write(out)
})
