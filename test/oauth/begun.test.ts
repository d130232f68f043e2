/** What replicas remember of the sign-ins at the facade. */
import { createHash, randomBytes } from 'node:crypto'
import t from 'tap'
import { BegunSignIns, type SharedBegun } from '../../src/services/oauth/server/begun.js'

const HOUR = 3_600_000
const verifier = () => randomBytes(32).toString('base64url')
const challengeOf = (text: string) => createHash('sha256').update(text).digest('base64url')

/** Values as replicas share them, and whether they can be reached. */
function shared() {
  const values = new Map<string, string>()
  const state = { isAway: false, values }
  const reach = async () => {
    if (state.isAway) throw new Error('away')
  }
  const store: SharedBegun = {
    recall: async (_kind, name) => reach().then(() => values.get(name)),
    remember: (_kind, name, text) =>
      reach().then(
        () => Boolean(values.set(name, text)),
        () => false,
      ),
    change: async (_kind, name, _milliseconds, edit) => {
      await reach()
      const { text, result } = edit(values.get(name))
      if (text !== undefined) values.set(name, text)
      return result
    },
    forget: (_kind, name) => void values.delete(name),
  }
  return { state, store }
}

t.test('a sign-in counts for an hour, and for few requests, at all replicas together', async (t) => {
  const { state, store } = shared()
  let time = 0
  const now = () => time
  const [one, other, alone] = [
    new BegunSignIns({ shared: store, now }),
    new BegunSignIns({ shared: store, now }),
    new BegunSignIns({ now }),
  ]
  const proof = verifier()
  t.equal(await one.begin('no challenge'), false)
  t.equal(await one.begin(challengeOf(proof)), true)
  t.equal(await alone.isBegun(proof), false)
  t.same(await Promise.all([1, 2, 3, 4, 5].map(() => one.isBegun(proof))), [true, true, true, true, false])
  const elsewhere = []
  for (let i = 0; i < 5; i++) elsewhere.push(await other.isBegun(proof))
  t.same(elsewhere, [true, true, true, true, false])
  t.equal(await other.isBegun(verifier()), false)
  state.isAway = true
  t.equal(await other.isBegun(verifier()), undefined, 'nobody can know')
  state.isAway = false
  state.values.clear()
  time = HOUR + 1
  t.equal(await one.isBegun(proof), false)
})

t.test('strangers who begin very many sign-ins keep nobody from signing in, and fill no store', async (t) => {
  const { state, store } = shared()
  const [one, other] = [new BegunSignIns({ shared: store }), new BegunSignIns({ shared: store })]
  const proof = verifier()
  await one.begin(challengeOf(proof))
  for (let i = 0; i < 12_000; i++) await one.begin(challengeOf(String(i)))
  t.ok(state.values.size <= 10_001, `${state.values.size} values`)
  t.equal(await one.isBegun(proof), undefined)
  t.equal(await other.isBegun(proof), undefined)
})
