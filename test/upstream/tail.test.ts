/** Which lines of a program's stderr the bridge keeps, and which one it reports first. */
import t from 'tap'
import { excerpt, reasonIn, StderrTail } from '../../src/servers/transport/stdio/stderr-tail.js'

const tailOf = (text: string, length = text.length) => {
  const tail = new StderrTail()
  const bytes = new TextEncoder().encode(text)
  for (let at = 0; at < bytes.length; at += length) tail.push(bytes.subarray(at, at + length))
  return tail
}

const dying: [name: string, lines: string[], reason: string | undefined][] = [
  [
    'Node.js',
    [
      'node:internal/modules/cjs/loader:1424',
      '  throw err;',
      '  ^',
      '',
      "Error: Cannot find module '/x/server.js'",
      '    at Function._resolveFilename (node:internal/modules/cjs/loader:1421:15)',
      "  code: 'MODULE_NOT_FOUND',",
      '}',
      'Node.js v24.0.0',
    ],
    "Error: Cannot find module '/x/server.js'",
  ],
  [
    'Python',
    [
      'Traceback (most recent call last):',
      '  File "/x/server.py", line 1, in <module>',
      '    import mcp.server',
      "KeyError: 'x'",
      'During handling of the above exception, another exception occurred:',
      "ModuleNotFoundError: No module named 'mcp'",
    ],
    "ModuleNotFoundError: No module named 'mcp'",
  ],
  [
    'npx',
    ['npm error code E404', 'npm error 404 Not Found - GET https://registry.npmjs.org/x', 'npm error A log is in /x'],
    'npm error A log is in /x',
  ],
  ['a shell', ['sh: 1: uvx: not found'], 'sh: 1: uvx: not found'],
  [
    'Docker',
    ['docker: Error response from daemon: no such image', 'See docker run --help'],
    'docker: Error response from daemon: no such image',
  ],
  [
    'Rust',
    ["thread 'main' panicked at src/main.rs:2:5:", 'no key', 'note: run with RUST_BACKTRACE=1'],
    "thread 'main' panicked at src/main.rs:2:5:",
  ],
  ['Go', ['panic: no key', '', 'goroutine 1 [running]:', 'main.main()'], 'panic: no key'],
  [
    'Java',
    ['Exception in thread "main" java.lang.IllegalStateException: no key', '\tat Main.main(Main.java:3)'],
    'Exception in thread "main" java.lang.IllegalStateException: no key',
  ],
  ['a sentence', ['Starting', 'API_KEY is required'], 'API_KEY is required'],
  ['no reason', ['Starting', 'Bye'], undefined],
]

t.test('the line that looks like the reason comes first', async (t) => {
  for (const [name, lines, reason] of dying) {
    t.equal(reasonIn(lines), reason, name)
    const { lines: kept } = tailOf(lines.join('\n'))
    t.equal(excerpt(kept)[0], reason ?? lines[0], name)
  }
})

t.test('keeps the first and the last of many lines, and an excerpt has a few of each', async (t) => {
  const { lines } = tailOf(Array.from({ length: 10_000 }, (_, n) => `line ${n}`).join('\n'))
  t.equal(lines.length, 142)
  t.same([lines[0], lines[39], lines[40], lines.at(-1)], ['line 0', 'line 39', '… (9859 lines left out)', 'line 9999'])
  t.same(excerpt(lines).slice(3, 6), ['line 3', '… (132 lines left out)', 'line 9994'])
  t.equal(excerpt(lines).length, 11)
})

t.test('lines are the same however they are split, and bounded', async (t) => {
  const text = `é\n\n\u001b[31mred\u001b[0m\n${'x'.repeat(5_000)}\nno end`
  const whole = tailOf(text).lines
  t.same(
    whole.slice(0, 2),
    ['é', ' red '].map((line) => line.trim()),
  )
  t.ok(whole.every(({ length }) => length <= 1_000))
  for (const length of [1, 2, 7]) t.same(tailOf(text, length).lines, whole, String(length))
})
