/** Keys that are configured: they can be changed without anybody noticing who has something sealed with the old one. */
import t from 'tap'
import { keyOf, Sealer } from '../src/base/crypto/seal.js'
import { parseSettings } from '../src/config/settings.js'

const [old, anew] = ['the old secret, which is long enough', 'the new secret, which is long enough'] as const

t.test('opens what the old key sealed while that key is configured, and seals with the new one', async (t) => {
  const before = new Sealer([keyOf(old)], 'rs').seal({ x: 'a' })
  const both = new Sealer([keyOf(anew), keyOf(old)], 'rs')
  t.same(both.open(before), { x: 'a' })
  const after = both.seal({ x: 'b' })
  t.same(new Sealer([keyOf(anew)], 'rs').open(after), { x: 'b' })
  t.equal(new Sealer([keyOf(anew)], 'rs').open(before), undefined)
  t.equal(new Sealer([keyOf(old)], 'task').open(before), undefined, 'what is for one thing is for nothing else')
})

t.test('a key comes from the configuration or the environment, and must not be short', async (t) => {
  const server = { mcpServers: { a: { command: 'x' } } }
  const { stateKeys } = parseSettings({ ...server, stateKeys: ['${KEY}'] }, { env: { KEY: anew }, read: () => '' })
  t.same(stateKeys, [anew])
  t.throws(() => parseSettings({ ...server, stateKeys: ['short'] }, { env: {}, read: () => '' }), {
    message: /at least 32 characters/,
  })
})
