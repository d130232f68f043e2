import t from 'tap'
import { objectIn } from '../../src/services/oauth/get-object.js'

t.test('metadata are an object, with or without a byte order mark', async (t) => {
  const read = (text: string) => objectIn(new TextEncoder().encode(text))
  for (const text of ['{"issuer":"https://a.example"}', '\ufeff{"issuer":"https://a.example"}'])
    t.same(read(text), { issuer: 'https://a.example' })
  for (const text of ['', '\ufeff', '[]', '\ufeff"a"', '<html>']) t.equal(read(text), undefined, text)
})
