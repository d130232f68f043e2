/** The messages that a channel has read are delivered in slices, and the end after all of them. */
import t from 'tap'
import { Slices } from '../../src/servers/transport/slices.js'

t.test('the end comes after all items, however many there are and whenever it comes', async (t) => {
  for (const count of [1, 63, 64, 65, 200])
    for (const at of [0, count - 1, count]) {
      const taken: number[] = []
      const ended = await new Promise<number>((resolve) => {
        const end = () => slices.finish(() => resolve(taken.length))
        const slices: Slices<number> = new Slices(
          (item) => {
            taken.push(item)
            // A reader may end the source while it takes an item.
            if (item === at) end()
          },
          () => {},
        )
        slices.deliver(Array.from({ length: count }, (_, item) => item))
        if (at === count) end()
      })
      t.equal(ended, count, `${count} items, the end at ${at}`)
    }
})

t.test('a source that ends while an item is handled delivers no more', async (t) => {
  const heard: string[] = []
  const slices: Slices<string> = new Slices(
    (item) => {
      heard.push(item)
      slices.clear()
      slices.finish(() => heard.push('end'))
    },
    () => heard.push('drained'),
  )
  slices.deliver(['one', 'two'])
  await new Promise(setImmediate)
  t.same(heard, ['one', 'end'])
})
