import t from 'tap'
import { losesHeaders } from '../src/command/runtime.js'

t.test('recognizes a Node.js that drops headers', async (t) => {
  const rows: [version: string, loses: boolean][] = [
    ['20.19.0', false],
    ['21.7.3', false],
    ['22.23.1', true],
    ['22.23.2', false],
    ['22.24.0', false],
    ['23.11.0', true],
    ['24.9.0', true],
    ['24.18.0', true],
    ['24.18.1', false],
    ['24.21.0', false],
    ['25.1.0', true],
    ['26.5.0', true],
    ['26.5.1', false],
    ['27.0.0', false],
  ]
  for (const [version, loses] of rows) t.equal(losesHeaders(version), loses, version)
})
