/**
 * The panel of a call on the inspector's page: its place and size, texts that grow instead of scrolling, and the changes
 * marked in them.
 *
 * Runs in its own process: its browser ends with it.
 */
import t from 'tap'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { SERVERS, type ServerKind } from '../matrix/servers.js'
import { startBridge } from '../support/bridge.js'
import { type Chromium, noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { messages } from '../support/inspected.js'
import { look, pictures, problems } from '../support/inspector-page.js'
import { tellCall, tickingRing } from '../support/sights.js'

const skip = noBrowser
const SIZE = { width: 1440, height: 900 }

/** A page with a real call of a modern client to a legacy server, whose request and answer are long. */
async function lookAtCall(t: Parameters<typeof look>[0]) {
  const ring = tickingRing({ payloads: 'all' })
  const legacy = SERVERS.find(({ era }) => era === 'legacy') as ServerKind
  const { entry } = await legacy.start(t)
  const { url } = await startBridge(t, entry, {}, { recorder: new EventRecorder(ring.record) })
  const note = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`member ${i}`, `value ${i}`.repeat(5)]))
  const call = messages.call('echo', { text: JSON.stringify(note), note }, { meta: { progressToken: 'mine' } })
  await (await messages.post(url, call)).text()
  const seen = await look(t, ring)
  await seen.browser.emulate(SIZE)
  await seen.go('#/calls/c1')
  await until(() => seen.browser.evaluate<boolean>(`document.querySelectorAll('.json').length >= 4`), 'the texts')
  return seen
}

/** The side in `aria-valuenow` and in pixels that the list has. */
function listSize(browser: Chromium) {
  return browser.evaluate<{ now: number; below: number; right: number }>(`{
    const list = document.getElementById('list').getBoundingClientRect()
    const main = document.querySelector('main').getBoundingClientRect()
    const now = Number(document.querySelector('.splitter').ariaValueNow);
    ({ now, below: (list.height / main.height) * 100, right: (list.width / main.width) * 100 })
  }`)
}

async function drag(browser: Chromium, to: { x: number; y: number }): Promise<void> {
  const at = await browser.evaluate<{ x: number; y: number }>(`{
    const { left, top, width, height } = document.querySelector('.splitter').getBoundingClientRect();
    ({ x: left + width / 2, y: top + height / 2 })
  }`)
  const send = (type: string, where: object) =>
    browser.send('Input.dispatchMouseEvent', { type, button: 'left', buttons: 1, clickCount: 1, ...where })
  await send('mousePressed', at)
  await send('mouseMoved', to)
  await send('mouseReleased', to)
}

const pressPanel = (browser: Chromium) =>
  browser.evaluate(
    `[...document.querySelectorAll('button')].find(({ innerText }) => innerText.startsWith('Panel ')).click()`,
  )

t.test('request and answer of a translated call are visible without scrolling', { skip }, async (t) => {
  const { browser, shows, withoutMistakes } = await lookAtCall(t)
  const check = async (where: string) => {
    const seen = await browser.evaluate<{ scrolled: number; below: number[]; widths: number[] }>(`{
      const panel = document.getElementById('panel')
      const end = panel.getBoundingClientRect().bottom
      // Three lines of each text have to be above the end of the panel.
      const texts = [...document.querySelectorAll('.json')].map((one) => one.getBoundingClientRect());
      ({ scrolled: panel.scrollTop, below: texts.map(({ top }) => end - top - 3 * 19), widths: texts.map(({ width }) => width) })
    }`)
    t.equal(seen.scrolled, 0)
    t.equal(seen.below.length, 4, 'request and answer on both wires')
    for (const rest of seen.below) t.ok(rest >= 0, `${where}: ${rest}`)
    t.ok(Math.max(...seen.widths) - Math.min(...seen.widths) < 12, 'columns are equally wide')
  }
  await check('below')
  await browser.screenshot(`${pictures}panel-below.png`)
  await pressPanel(browser)
  await shows(/Panel below/)
  await until(async () => Math.abs((await listSize(browser)).right - 40) < 1, 'the list is at the left')
  await check('right')
  await browser.screenshot(`${pictures}panel-right.png`)
  withoutMistakes()
})

t.test(
  'texts grow when asked to, both sides alike, and nothing in the panel catches the wheel',
  { skip },
  async (t) => {
    const { browser, shows, withoutMistakes } = await lookAtCall(t)
    const bottoms = () =>
      browser.evaluate<number[][]>(
        `[...document.querySelectorAll('.sides tbody tr')].map((row) => [...row.cells].map((cell) => cell.getBoundingClientRect().bottom))`,
      )
    const isEven = async () => (await bottoms()).every(([left, right]) => left === right)
    t.ok(await isEven())
    t.notMatch(await browser.text(), /member 39/)
    await browser.evaluate(
      `[...document.querySelectorAll('.link')].filter(({ innerText }) => /more line/.test(innerText)).slice(0, 1).forEach((one) => one.click())`,
    )
    await shows(/Show less/)
    await shows(/"member 39": "value 39.*"member 39": "value 39/s)
    t.ok(await isEven())
    const inner = await browser.evaluate<string[]>(
      `[...document.querySelectorAll('#panel *')].filter((one) => one.scrollHeight > one.clientHeight + 1 && ['auto', 'scroll'].includes(getComputedStyle(one).overflowY)).map(({ className }) => className)`,
    )
    t.same(inner, [])
    const { x, y } = await browser.evaluate<{ x: number; y: number }>(
      `{ const { left, top } = document.querySelector('.json').getBoundingClientRect(); ({ x: left + 50, y: top + 50 }) }`,
    )
    await browser.send('Input.dispatchMouseEvent', { type: 'mouseWheel', x, y, deltaX: 0, deltaY: 300 })
    await until(
      () => browser.evaluate<boolean>(`document.getElementById('panel').scrollTop === 300`),
      'the panel scrolls',
    )
    await browser.evaluate(`document.getElementById('panel').scrollTop = 0`)
    const before = await browser.evaluate<number>(`document.querySelectorAll('.json').length`)
    await browser.evaluate(`document.querySelector('.fold').focus()`)
    await browser.evaluate(`document.activeElement.click()`)
    await until(
      async () => (await browser.evaluate(`document.querySelectorAll('.json').length`)) === before - 2,
      'a row is folded on both sides',
    )
    t.equal(await browser.evaluate(`document.activeElement.ariaExpanded`), 'false', 'the focus stays')
    withoutMistakes()
  },
)

t.test('mouse and keys move the splitter, and a later visit has the same layout', { skip }, async (t) => {
  const { base, browser, shows, go, withoutMistakes } = await lookAtCall(t)
  const isAt = (percent: number, side: 'below' | 'right' = 'below') =>
    until(async () => {
      const size = await listSize(browser)
      return size.now === percent && Math.abs(size[side] - percent) < 1.5
    }, `${percent} % for the list`)
  await isAt(32)
  await drag(browser, { x: 700, y: 480 })
  const { now, below } = await listSize(browser)
  t.ok(now > 35 && Math.abs(below - now) < 1.5, `${now}`)
  await browser.evaluate(`document.querySelector('.splitter').focus()`)
  const call = await browser.evaluate('location.hash')
  await browser.press('ArrowDown')
  await isAt(now + 2)
  await browser.press('ArrowUp')
  await isAt(now)
  await browser.press('Home')
  await isAt(10)
  await browser.press('ArrowUp')
  await browser.press('End')
  await isAt(85)
  await browser.press('Enter')
  await isAt(32)
  t.equal(await browser.evaluate('location.hash'), call, 'the same call is selected')
  await pressPanel(browser)
  await isAt(40, 'right')
  const separator = `{ const { role, ariaOrientation } = document.querySelector('.splitter'); ({ role, ariaOrientation }) }`
  t.same(await browser.evaluate(separator), { role: 'separator', ariaOrientation: 'vertical' })
  await drag(browser, { x: 720, y: 300 })
  await isAt(50, 'right')
  await browser.open(`${base}/inspect`)
  await shows(/live/)
  await go('#/calls/c1')
  await until(() => browser.evaluate<boolean>(`document.querySelector('.splitter') !== null`))
  await isAt(50, 'right')
  await browser.emulate({ width: 1000 })
  await isAt(32, 'below')
  for (const stored of ['no JSON', '[]', 'null', '{"side":"left","below":1e9,"right":"50"}']) {
    await browser.evaluate(`localStorage.setItem('mcp-bridge-panel', ${JSON.stringify(stored)})`)
    await browser.open('about:blank')
    await browser.open(`${base}/inspect#/calls/c1`)
    await until(() => browser.evaluate<boolean>(`document.querySelector('.splitter') !== null`))
    await isAt(32, 'below')
  }
  withoutMistakes()
})

t.test(
  'a mark explains itself to the pointer and to the keyboard, with a sign besides its colour',
  { skip },
  async (t) => {
    const { browser, shows, withoutMistakes } = await lookAtCall(t)
    const tip = () => browser.evaluate<string | undefined>(`document.querySelector('.tip')?.innerText`)
    const ids = 'Rewritten. Request ids: the bridge sends its own to the server and restores yours.'
    const at = await browser.evaluate<{ x: number; y: number }>(
      `{ const { left, top } = document.querySelector('.line.replaced').getBoundingClientRect(); ({ x: left + 60, y: top + 8 }) }`,
    )
    await browser.send('Input.dispatchMouseEvent', { type: 'mouseMoved', ...at })
    await until(async () => (await tip()) === ids, 'the pointer is on it')
    await browser.send('Input.dispatchMouseEvent', { type: 'mouseMoved', x: 700, y: 10 })
    await until(async () => (await tip()) === undefined, 'the pointer has left')
    const stops = await browser.evaluate<number[]>(
      `[...document.querySelectorAll('.json')].map((one) => one.querySelectorAll('.sign[tabindex="0"]').length)`,
    )
    t.ok(
      stops.every((count) => count <= 1),
      'a text is one stop of the tab key',
    )
    await browser.evaluate(
      `[...document.querySelectorAll('.link')].find(({ innerText }) => /more line/.test(innerText)).click()`,
    )
    await shows(/Show less/)
    await browser.evaluate(`document.querySelector('.sign').focus()`)
    await until(async () => (await tip()) === ids, 'it has the focus')
    await browser.press('ArrowDown')
    await until(async () => /^(Removed|Rewritten)\. (Envelope|Progress)/.test((await tip()) ?? ''), 'the next one')
    await browser.press('Escape')
    await until(async () => (await tip()) === undefined, 'Escape hides it')
    t.match(await browser.evaluate('location.hash'), /c1/, 'the call stays')
    const signs = await browser.evaluate<string[]>(
      `[...new Set([...document.querySelectorAll('.sign')].map((one) => one.parentElement.className + ' ' + getComputedStyle(one, '::before').content))].sort()`,
    )
    t.same(
      signs,
      ['line added "+"', 'line removed "−"', 'line replaced "~"'].filter((one) => signs.includes(one)),
    )
    t.ok(signs.length >= 2)
    const copied = await browser.evaluate<string>(`document.querySelector('.json').textContent`)
    t.notMatch(copied, /[~−]/, 'a copied text has no signs')
    withoutMistakes()
  },
)

t.test('axe finds nothing in the panel, at 1440 and 400 pixels, dark and light', { skip }, async (t) => {
  const { browser, withoutMistakes } = await lookAtCall(t)
  await browser.evaluate(`document.querySelectorAll('.link[aria-expanded="false"]').forEach((one) => one.click())`)
  await browser.evaluate(`document.querySelector('.sign').focus()`)
  for (const scheme of ['dark', 'light'])
    for (const width of [1440, 400]) {
      await browser.emulate({ ...SIZE, width, scheme })
      await until(() => browser.evaluate<boolean>('document.getAnimations().length === 0'), 'colours have changed')
      t.same(await problems(browser), [], `${width} ${scheme}`)
      await browser.screenshot(`${pictures}panel-${width}-${scheme}.png`)
      const wide = await browser.evaluate<string[]>(
        `[document.documentElement, ...document.querySelectorAll('main, #panel, #panel .json')].filter((one) => one.scrollWidth > one.clientWidth).map(({ className }) => className)`,
      )
      t.same(wide, [], `nothing is wider than ${width}`)
    }
  withoutMistakes()
})

t.test('changes are listed where no text is kept, or where it does not have them', { skip }, async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  tellCall(ring.record, { id: 1 })
  tellCall(ring.record, { id: 2, texts: { request: '{"params":{"_meta":{}}}', result: '{"result":{"resultType":1}}' } })
  const { browser, shows, go, withoutMistakes } = await look(t, ring)
  await go('#/calls/c1')
  await shows(/−\s*removed\s+params\._meta\.…\/protocolVersion envelope/s)
  await go('#/calls/c2')
  await until(() => browser.evaluate<boolean>(`document.querySelectorAll('.json').length === 4`), 'the texts')
  await shows(/−\s*removed\s+params\._meta\.…\/protocolVersion envelope/s)
  t.notMatch(await browser.text(), /result\.resultType/, 'this one is in the text')
  withoutMistakes()
})

t.test('the whole panel can be used with the keyboard alone', { skip }, async (t) => {
  const { browser, withoutMistakes } = await lookAtCall(t)
  const tab = async () => {
    const key = { key: 'Tab', code: 'Tab', windowsVirtualKeyCode: 9 }
    await browser.send('Input.dispatchKeyEvent', { type: 'rawKeyDown', ...key })
    await browser.send('Input.dispatchKeyEvent', { type: 'keyUp', ...key })
  }
  const space = async () => {
    const key = { key: ' ', code: 'Space', windowsVirtualKeyCode: 32 }
    await browser.send('Input.dispatchKeyEvent', { type: 'keyDown', text: ' ', ...key })
    await browser.send('Input.dispatchKeyEvent', { type: 'keyUp', ...key })
  }
  const focused = () =>
    browser.evaluate<{ name: string; isSeen: boolean; label: string }>(`{
      const one = document.activeElement
      const { width, height } = one.getBoundingClientRect()
      const isSeen = one.matches(':focus-visible') && width > 0 && height > 0;
      ({ name: one.id || one.className || one.localName, isSeen, label: one.ariaLabel ?? one.innerText })
    }`)
  const names: string[] = []
  for (let i = 0; i < 100 && names.at(-1) !== 'body'; i++) {
    await tab()
    const { name, isSeen, label } = await focused()
    names.push(name)
    if (name !== 'body') t.ok(isSeen, `the focus is visible on ${name}: ${label}`)
    if (name === 'fold' && !names.slice(0, -1).includes('fold')) {
      await space()
      await until(() => browser.evaluate<boolean>(`document.activeElement.ariaExpanded === 'false'`), 'it is folded')
      await space()
      await until(() => browser.evaluate<boolean>(`document.activeElement.ariaExpanded === 'true'`), 'it is open again')
    }
  }
  for (const name of ['splitter', 'tab-messages', 'panel', 'fold', 'sign', 'link']) t.ok(names.includes(name), name)
  t.equal(names.at(-1), 'body', 'the focus leaves the panel')
  withoutMistakes()
})
