/** A file whose test throws what nobody catches (tests.test.ts). */
import t from 'tap'

t.test('this one throws unheard', async () => {
  setImmediate(() => {
    throw new Error('heard by nobody')
  })
  await new Promise((resolve) => setTimeout(resolve, 10))
})
