/** A file whose test waits for ever, because of a promise that nobody hears (tests.test.ts). */
import t from 'tap'

t.test('this one waits', async (t) => {
  const unheard = [Promise.reject(new Error('rejected for nobody'))]
  t.equal(unheard.length, 1)
  await new Promise(() => {})
})
