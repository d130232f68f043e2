/** How a HangUp aborts, compared with the AbortController that it replaces. */
import t from 'tap'
import { HangUp } from '../../src/base/time/hang-up.js'
import { pause } from '../../src/base/time/pause.js'
import { within } from '../../src/base/time/time.js'

t.test('aborts once, with the first reason, and calls each listener once', async (t) => {
  const hangUp = new HangUp()
  const called: string[] = []
  hangUp.addEventListener('abort', () => called.push('one'))
  hangUp.addEventListener('abort', () => called.push('two'))
  hangUp.throwIfAborted()
  hangUp.abort('enough')
  hangUp.abort('again')
  hangUp.addEventListener('abort', () => called.push('late'))
  t.same(called, ['one', 'two'])
  t.equal(hangUp.aborted, true)
  t.equal(hangUp.reason, 'enough')
  t.throws(() => hangUp.throwIfAborted())
})

t.test('the default reason is the one of an AbortController', async (t) => {
  const [hangUp, controller] = [new HangUp(), new AbortController()]
  hangUp.abort()
  controller.abort()
  t.same(hangUp.reason, controller.signal.reason)
})

t.test('does not call a removed listener', async (t) => {
  const hangUp = new HangUp()
  const listener = () => t.fail('called')
  hangUp.addEventListener('abort', listener)
  hangUp.removeEventListener('abort', listener)
  hangUp.removeEventListener('abort', listener)
  hangUp.abort()
})

t.test('aborts with its parent, for the same reason, unless it has aborted already', async (t) => {
  for (const parent of [new HangUp(), new AbortController()]) {
    const signal = parent instanceof HangUp ? parent : parent.signal
    const [child, other] = [new HangUp(signal), new HangUp(signal)]
    other.abort('mine')
    t.notOk(signal.aborted, 'a child does not abort its parent')
    parent.abort('theirs')
    t.same([child.reason, other.reason], ['theirs', 'mine'])
    t.equal(new HangUp(signal).reason, 'theirs', 'the parent had aborted before')
  }
})

t.test('a wait ends when it aborts', async (t) => {
  const hangUp = new HangUp()
  const waiting = [pause(60_000, hangUp), within(new Promise(() => {}), 60_000, undefined, hangUp).catch((why) => why)]
  hangUp.abort('enough')
  t.same(await Promise.all(waiting), [false, 'enough'])
})
