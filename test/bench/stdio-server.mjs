/** The least that a server of an era on a pipe can be, a line in, a line out: `node stdio-server.mjs <era>`. */
import { acknowledgement, answerTo } from './answers.mjs'

/** Longer answers are sent as the bytes they are kept in. */
const LONG = 64 * 1024
const era = process.argv[2] === 'modern' ? 'modern' : 'legacy'
let rest = ''

process.stdin.setEncoding('utf8')
process.stdin.on('data', (/** @type {string} */ piece) => {
  const lines = (rest + piece).split('\n')
  rest = lines.pop() ?? ''
  let out = ''
  for (const line of lines) {
    const said = answerTo(line, era)
    if (!said) continue
    if (said.method === 'subscriptions/listen') {
      out += `${acknowledgement(said.id)}\n`
    } else if (said.progress.length > 0) {
      sayInSteps([...said.progress, said.front + said.rest])
    } else if (said.bytes.length < LONG) {
      out += `${said.front + said.rest}\n`
    } else {
      process.stdout.write(out + said.front)
      process.stdout.write(said.bytes)
      out = '\n'
    }
  }
  if (out !== '') process.stdout.write(out)
})

/**
 * Writes each message by itself, as a program does that works in between.
 *
 * @param {string[]} messages
 */
function sayInSteps([first, ...others]) {
  process.stdout.write(`${first}\n`)
  if (others.length > 0) setImmediate(sayInSteps, others)
}
