import fc from 'fast-check'
import t from 'tap'
import { type Id, idKey, idValue, integerIn, keptKey, readId } from '../../src/base/rpc/message.js'

const SPELLINGS: [json: string, integer: string | undefined][] = [
  ['1', '1'],
  ['1.0', '1'],
  ['1.000', '1'],
  ['1e0', '1'],
  ['1E+0', '1'],
  ['10E-1', '1'],
  ['0.1e1', '1'],
  ['0.0100e2', '1'],
  ['-1.0', '-1'],
  ['-7.50e2', '-750'],
  ['12e1', '120'],
  ['0', '0'],
  ['-0', '0'],
  ['-0.0', '0'],
  ['0e999999999999', '0'],
  ['9007199254740993.0', '9007199254740993'],
  ['1e63', `1${'0'.repeat(63)}`],
  ['9'.repeat(64), '9'.repeat(64)],
  ['9'.repeat(65), undefined],
  ['1e64', undefined],
  ['1e999999999999999999', undefined],
  ['1e-999999999999999999', undefined],
  ['1.5', undefined],
  ['15e-1', undefined],
  ['0.1', undefined],
  ['1.', undefined],
  ['01', undefined],
  ['+1', undefined],
  ['1e', undefined],
  ['0x1', undefined],
  [' 1', undefined],
  ['', undefined],
  ['null', undefined],
  ['"1"', undefined],
]

t.test('an integer is the same in any spelling', async (t) => {
  for (const [json, integer] of SPELLINGS) t.equal(integerIn(json), integer, json)
})

t.test('is the same number as in JavaScript, where that is exact', async (t) => {
  const number = fc.tuple(fc.maxSafeInteger(), fc.nat(6), fc.integer({ min: -6, max: 6 }))
  fc.assert(
    fc.property(number, ([whole, zeros, exponent]) => {
      const text = `${whole}${zeros > 0 ? `.${'0'.repeat(zeros)}` : ''}e${exponent}`
      const value = BigInt(whole)
      const power = 10n ** BigInt(Math.abs(exponent))
      const exact = exponent >= 0 ? value * power : value % power === 0n ? value / power : undefined
      t.equal(integerIn(text), exact?.toString(), text)
    }),
  )
})

t.test('ids keep their text, and equal ones have the same key', async (t) => {
  for (const [json, integer] of SPELLINGS) {
    if (integer === undefined) continue
    t.equal(readId(json), json)
    t.equal(idKey(json as Id), integer, json)
  }
  t.not(idKey('1.0' as Id), idKey('"1.0"' as Id))
  t.equal(idValue('1.0' as Id), 1)
  t.equal(idValue('9007199254740993.0' as Id), '9007199254740993')
  t.equal(keptKey(new Map([['7', '']]), '7.0' as Id), '7')
  t.equal(keptKey(new Map([['7', '']]), '"7.0"' as Id), '7')
  t.equal(keptKey(new Map([['"7"', '']]), '7e0' as Id), '"7"')
})
