import fc from 'fast-check'
import t from 'tap'
import { digest } from '../../src/base/crypto/digest.js'
import { newKey, randomId, Sealer } from '../../src/base/crypto/seal.js'

const FIELDS = { x: 'an id', r: 7, p: 'é😀', exp: 1_900_000_000_000 }

t.test('opens what it sealed, and reveals nothing of it', async () => {
  const sealer = new Sealer([newKey()], 'rs')
  const field = fc.oneof(fc.string({ maxLength: 100 }), fc.integer())
  fc.assert(
    fc.property(fc.dictionary(fc.string({ maxLength: 10 }), field, { maxKeys: 5 }), (fields) => {
      const text = sealer.seal(fields)
      const opened = sealer.open(text)
      return /^b1\.[\w-]+\.[\w-]+$/.test(text) && JSON.stringify(opened) === JSON.stringify(fields)
    }),
  )
})

t.test('seals equal texts differently', async (t) => {
  const sealer = new Sealer([newKey()], 'rs')
  t.equal(new Set(Array.from({ length: 1_000 }, () => sealer.seal(FIELDS))).size, 1_000)
})

t.test('refuses a sealed text with any bit changed', async (t) => {
  const sealer = new Sealer([newKey()], 'rs')
  const text = sealer.seal(FIELDS)
  const opened: string[] = []
  for (let at = 0; at < text.length; at++) {
    for (let bit = 0; bit < 16; bit++) {
      const changed = String.fromCharCode(text.charCodeAt(at) ^ (1 << bit))
      const other = text.slice(0, at) + changed + text.slice(at + 1)
      if (sealer.open(other)) opened.push(other)
    }
  }
  t.same(opened, [])
  t.same(sealer.open(text), FIELDS)
})

t.test('refuses a sealed text that was truncated, joined from two, or rewritten', async (t) => {
  const keys = [newKey(), newKey()]
  const sealer = new Sealer(keys, 'rs')
  const text = sealer.seal(FIELDS)
  const other = sealer.seal({ ...FIELDS, x: 'another' })
  for (let length = 0; length < text.length; length++) t.equal(sealer.open(text.slice(0, length)), undefined)
  const [version, id, body = ''] = text.split('.')
  const half = Math.floor(body.length / 2)
  const bytes = Buffer.from(body, 'base64url')
  const wrong = [
    `${version}.${id}.${body.slice(0, half)}${other.split('.')[2]?.slice(half)}`,
    `${version}.${keys[1]?.id}.${body}`,
    `${version}.${id}.${body}=`,
    `${version}.${id}.${bytes.toString('base64')}`,
    `${version}.${id}. ${body}`,
    `${version}.${id}.${body}.`,
    `${version}.${id}.${body}.${body}`,
    `b2.${id}.${body}`,
    `.${id}.${body}`,
    `${version}..${body}`,
    `${version}.${id}.`,
    ` ${text}`,
    `${text}\n`,
    '',
    '..',
    'x'.repeat(1_000_000),
  ].filter((one) => one !== text)
  for (const one of wrong) t.equal(sealer.open(one), undefined, one.slice(0, 100))
  t.equal(
    sealer.open(sealer.seal({ long: 'x'.repeat(3_000) })),
    undefined,
    'nor is anything that is too long to be ours',
  )
})

t.test('the first key seals, and all of them open', async (t) => {
  const [older, newer, stranger] = [newKey(), newKey(), newKey()]
  const before = new Sealer([older], 'rs')
  const now = new Sealer([newer, older], 'rs')
  t.same(now.open(before.seal(FIELDS)), FIELDS)
  t.equal(before.open(now.seal(FIELDS)), undefined)
  t.equal(new Sealer([stranger], 'rs').open(now.seal(FIELDS)), undefined)
  const impostor = new Sealer([{ id: newer.id, secret: stranger.secret }], 'rs')
  t.equal(now.open(impostor.seal(FIELDS)), undefined, 'the name of a key is not the key')
})

t.test('a text sealed for one purpose cannot be opened for another', async (t) => {
  const key = newKey()
  const [states, tasks] = [new Sealer([key], 'rs'), new Sealer([key], 'task')]
  t.equal(tasks.open(states.seal(FIELDS)), undefined)
})

t.test('a hash distinguishes principals without naming them', async (t) => {
  const key = newKey()
  const [sealer, again, other] = [new Sealer([key], 'rs'), new Sealer([key], 'rs'), new Sealer([newKey()], 'rs')]
  t.equal(sealer.hash('alice'), again.hash('alice'))
  t.not(sealer.hash('alice'), sealer.hash('bob'))
  t.not(sealer.hash('alice'), other.hash('alice'))
  t.match(sealer.hash(''), /^[\w-]{22}$/)
  const rotated = new Sealer([newKey(), key], 'rs')
  t.not(rotated.hash('alice'), sealer.hash('alice'))
  t.ok(rotated.standsFor(sealer.hash('alice'), 'alice'), 'an older key is as good')
  t.notOk(sealer.standsFor(sealer.hash('a\ud800'), 'a\ud801'), 'in UTF-8, halves of surrogate pairs are the same')
  t.notOk(sealer.isSigned(sealer.sign('a\ud800'), 'a\ud801'))
  for (const wrong of [sealer.hash('bob'), other.hash('alice'), '', undefined, 7])
    t.notOk(rotated.standsFor(wrong, 'alice'))
  t.not(digest('a'), digest('b'))
  t.equal(new Set(Array.from({ length: 1_000 }, randomId)).size, 1_000)
})

t.test('bytes are sealed for one subject, and cannot be opened for another', async (t) => {
  const [older, newer] = [newKey(), newKey()]
  const sealer = new Sealer([older], 'replica')
  const both = new Sealer([newer, older], 'replica')
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 5_000 }), fc.string(), (bytes, about) => {
      const sealed = sealer.sealBytes(bytes, about)
      return (
        both.openBytes(sealed, about)?.equals(bytes) === true && sealer.openBytes(sealed, `${about}x`) === undefined
      )
    }),
  )
  const sealed = sealer.sealBytes(Buffer.from('something'), 'here')
  t.equal(new Sealer([older], 'rs').openBytes(sealed, 'here'), undefined, 'what is for one thing is not for another')
  t.equal(new Sealer([newer], 'replica').openBytes(sealed, 'here'), undefined)
  for (let at = 0; at < sealed.length; at++) {
    const changed = Buffer.from(sealed)
    changed[at] = (changed[at] as number) ^ 1
    t.equal(sealer.openBytes(changed, 'here'), undefined)
    t.equal(sealer.openBytes(sealed.subarray(0, at), 'here'), undefined)
  }
})
