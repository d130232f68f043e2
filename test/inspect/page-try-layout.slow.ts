/**
 * The view Try with many tools, in a real browser: what a person works with is in view, on a desk and on a phone, and visits start no program anew.
 *
 * Runs in its own process: its browser ends with it.
 */

import { createRequire } from 'node:module'
import { execPath } from 'node:process'
import t, { type Test } from 'tap'
import { noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { TOKEN } from '../support/inspector.js'
import { problems } from '../support/inspector-page.js'
import { everything, openTry } from '../support/try-page.js'

const { resolve } = createRequire(import.meta.url)
const server = (name: string, ...args: string[]) => ({
  command: execPath,
  args: [resolve(`@modelcontextprotocol/server-${name}/dist/index.js`), ...args],
})
/** Servers with some 40 tools, which are a group. */
const many = (t: Test) => ({
  everything,
  files: server('filesystem', temporaryFolder(t)),
  memory: server('memory'),
})
/** Whether something is in sight, as far as it has room. */
const seen = (selector: string) => `{
  const element = [...document.querySelectorAll(${JSON.stringify(selector)})].at(-1)
  const { left, top, width } = element?.getBoundingClientRect() ?? {}
  Boolean(width) && top >= 0 && top < innerHeight - 20 && element.contains(document.elementFromPoint(left + 5, top + 5))
}`
const SCREENS = [
  { width: 1400, height: 900 },
  { width: 1100, height: 480 },
  { width: 390, height: 850 },
]
/** Wide enough for two columns. */
const WIDE = 760

for (const { width, height } of SCREENS)
  t.test(`the form of the last of many tools is in view, ${width} x ${height}`, { skip: noBrowser }, async (t) => {
    const { browser, shows, press, withoutMistakes } = await openTry(t, many(t), { width })
    await browser.emulate({ width, height })
    await shows(/Tools [34]\d/)
    await until(() => browser.evaluate(`document.querySelectorAll('.items').length >= 3`), 'all lists')
    const isSeen = (selector: string) => browser.evaluate<boolean>(seen(selector))
    const down = () => browser.evaluate<number>(`document.querySelector('.choosing .lists').scrollTop`)
    t.ok(await isSeen('.choosing input[type=search]'), 'the search is in view')
    await browser.evaluate(`document.querySelector('.choosing .lists').scrollTo(0, 1e6)`)
    t.ok(await isSeen('.choosing input[type=search]'), 'also at the end of the lists')
    await browser.evaluate(`[...document.querySelectorAll('.items')][0].lastElementChild.scrollIntoView()`)
    const before = await down()
    t.ok(before > 0)
    await press('memory__open_nodes', '.items')
    await until(() => isSeen('.trying form h2'), 'the form')
    t.ok(await isSeen('.trying form button[type=submit]'), 'with its button')
    if (width > WIDE) t.equal(await down(), before, 'the lists stay where they were')
    else {
      t.notOk(await isSeen('.choosing .lists'), 'in place of the lists')
      await press('← Lists')
      await until(() => isSeen('.choosing .lists'), 'the lists again')
      await press('memory__open_nodes →', '.choosing')
      await until(() => isSeen('.trying form h2'), 'and back')
    }
    t.ok(await browser.evaluate(`document.documentElement.scrollWidth <= ${width}`), 'nothing scrolls sideways')
    t.same(await problems(browser), [], 'axe-core finds nothing')
    withoutMistakes()
  })

t.test('on a phone, the keyboard goes on where the person is', { skip: noBrowser }, async (t) => {
  const { browser, press, withoutMistakes } = await openTry(t, { everything }, { width: 390 })
  await until(() => browser.evaluate(`document.querySelectorAll('.items').length >= 3`), 'all lists')
  const focused = (selector: string) =>
    until(
      () => browser.evaluate(`document.activeElement?.matches(${JSON.stringify(selector)})`),
      `focus at ${selector}`,
    )
  await browser.evaluate(`{
    const last = [...document.querySelectorAll('.items button')].at(-1)
    last.focus()
    last.click()
  }`)
  await focused('.trying')
  await browser.evaluate(`document.querySelector('.trying .narrow').focus()`)
  await press('← Lists')
  await focused('.items [aria-pressed=true]')
  withoutMistakes()
})

t.test(
  'every letter can be written in a field, also those that are keys of the page',
  { skip: noBrowser },
  async (t) => {
    const { browser, press, shows, withoutMistakes } = await openTry(t, { everything })
    await shows(/Tools \d+/)
    await press('echo', '.items')
    await press('Edit as JSON', '.trying')
    const field = `document.querySelector('.trying textarea[aria-label="Arguments as JSON"]')`
    await until(() => browser.evaluate(`Boolean(${field})`), 'the field')
    await browser.evaluate(`${field}.focus(); ${field}.select()`)
    for (const key of 'y?/p*j[') await browser.press(key)
    t.equal(await browser.evaluate(`${field}.value`), 'y?/p*j[')
    t.notOk(await browser.evaluate(`Boolean(document.querySelector('dialog[open]'))`), 'the help stays closed')
    withoutMistakes()
  },
)

for (const { width, height } of SCREENS)
  t.test(`a call says that it waits for the person, ${width} x ${height}`, { skip: noBrowser }, async (t) => {
    const { browser, shows, press, as, withoutMistakes } = await openTry(t, { everything }, { width })
    await browser.emulate({ width, height })
    const isSeen = (selector: string) => browser.evaluate<boolean>(seen(selector))
    const said = (selector: string) =>
      browser.evaluate<string>(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ''`)
    // Twice, because the outcomes of calls make it longer.
    for (const revision of ['2026-07-28', '2025-11-25', '2026-07-28', '2025-11-25']) {
      await as(revision)
      await until(() => browser.evaluate(`document.querySelectorAll('.items').length >= 3`), 'all lists')
      if (width <= WIDE) await press('← Lists').catch(() => {})
      await press('trigger-elicitation-request', '.items')
      await until(() => isSeen('.trying form h2'), 'the form')
      await press('Call', '.trying form')
      await until(() => isSeen('.question h2'), 'the question comes into view')
      t.match(await said('.question'), /^The server asks\n+trigger-elicitation-request waits for your answer/)
      t.match(await said('.outcome [role=status]'), /^waits for your answer/)
      t.match(await said('nav [href^="#/try"]'), /1 question/)
      await browser.evaluate(`location.hash = '#/calls'`)
      await until(async () => !(await isSeen('.question h2')), 'another view')
      t.match(await said('nav [href^="#/try"]'), /1 question/, 'also in another view')
      await browser.evaluate(`location.hash = '#/try'`)
      await until(() => isSeen('.question h2'), 'it comes into view again')
      await press('Decline', '.question')
      await until(async () => /^done/.test(await said('.outcome [role=status]')), 'it is answered')
      await shows(/declined/)
      t.notMatch(await said('nav [href^="#/try"]'), /question/)
    }
    withoutMistakes()
  })

t.test('each kind of question names the call that waits for it', { skip: noBrowser }, async (t) => {
  const { browser, press, fill, as, withoutMistakes } = await openTry(t, { everything }, { width: 1100 })
  await browser.emulate({ width: 1100, height: 480 })
  const isSeen = () => browser.evaluate<boolean>(seen('.question h2'))
  const said = (selector: string) =>
    browser.evaluate<string>(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ''`)
  const kinds = [
    ['trigger-sampling-request', 'prompt', 'Who?', 'Answer'],
    ['trigger-url-elicitation', 'url', 'https://example.com/sign-in', 'Decline'],
  ] as const
  for (const revision of ['2026-07-28', '2025-11-25']) {
    await as(revision)
    for (const [tool, label, value, choice] of kinds) {
      await press(tool, '.items')
      await until(async () => (await said('.trying form h2')) === tool, `the form of ${tool}`)
      await fill(label, value)
      await press('Call', '.trying form')
      await until(isSeen, 'the question comes into view')
      t.match(await said('.question'), new RegExp(`${tool} waits for your answer`))
      t.match(await said('.outcome [role=status]'), /^waits for your answer/)
      await press(choice, '.question')
      await until(async () => /^done/.test(await said('.outcome [role=status]')), 'it is answered')
    }
  }
  withoutMistakes()
})

t.test('another call that runs does not say that it waits for the person', { skip: noBrowser }, async (t) => {
  const { browser, press, fill, shows, withoutMistakes } = await openTry(t, { everything })
  await shows(/Tools \d+/)
  await press('trigger-elicitation-request', '.items')
  await press('Call', '.trying form')
  await until(() => browser.evaluate(seen('.question h2')), 'the question')
  await press('trigger-long-running-operation', '.items')
  await fill('duration', '600')
  await press('Call', '.trying form')
  const states = () =>
    browser.evaluate<string[]>(
      `[...document.querySelectorAll('.outcome .status')].map(({ textContent }) => textContent)`,
    )
  await until(async () => (await states()).length === 2, 'both')
  t.same(await states(), ['in progress', 'waits for your answer'])
  await press('Decline', '.question')
  await until(async () => (await states())[1] === 'done', 'it is answered')
  t.same(await states(), ['in progress', 'done'])
  withoutMistakes()
})

t.test('visits of the view start a program once, and for clients of each era', { skip: noBrowser }, async (t) => {
  const { browser, shows, choose, as, press, fill, withoutMistakes } = await openTry(t, many(t))
  const starts = async () => {
    const { servers } = await browser.evaluate<{ servers: { name: string; starts: number }[] }>(
      `fetch('inspect/servers', { headers: { authorization: 'Bearer ${TOKEN}' } }).then((answer) => answer.json())`,
    )
    return servers.find(({ name }) => name === 'memory')?.starts
  }
  const listed = () =>
    until(
      () =>
        browser.evaluate(
          `document.querySelectorAll('.items button').length >= 9 && /^memory/.test(document.querySelector('.choosing [role=status]').textContent)`,
        ),
      'the tools of the server, as clients of both eras see them',
    )
  await shows(/Tools \d+/)
  await choose('memory')
  await listed()
  const first = await starts()
  for (const revision of ['2025-11-25', '2026-07-28']) {
    for (let visit = 0; visit < 2; visit++) {
      await browser.evaluate(`window.before = true; location.reload()`)
      await until(() => browser.evaluate(`!window.before && Boolean(document.body)`), 'the page again')
      await shows(/Tools \d+/)
      await choose('memory')
      await listed()
      await as(revision)
      await listed()
    }
    await press('search_nodes', '.items')
    await fill('query', revision)
    await press('Call', '.trying form')
    await shows(/"entities": \[\]/)
  }
  t.equal(await starts(), first, 'no program has started')
  withoutMistakes()
})

t.test('on a phone, the header leaves the room to what is below it', { skip: noBrowser }, async (t) => {
  const width = 390
  const { browser, press, shows, withoutMistakes } = await openTry(t, { everything }, { width, view: '#/calls' })
  await browser.emulate({ width, height: 850 })
  const height = () => browser.evaluate<number>(`document.querySelector('.top').offsetHeight`)
  const isSeen = (selector: string) => browser.evaluate<boolean>(seen(selector))
  for (const view of ['calls', 'servers', 'sessions', 'refused', 'try']) {
    await browser.evaluate(`location.hash = '#/${view}'`)
    await until(() => isSeen(`nav [href^="#/${view}"][aria-current=page]`), view)
    t.ok((await height()) <= 125, `${view}: ${await height()} of 850 pixels`)
  }
  await browser.evaluate(`location.hash = '#/calls'`)
  await until(() => isSeen('#filter'), 'the filter stays')
  t.notOk(await isSeen('[aria-label=server]'))
  await press('More', '.top')
  await until(() => isSeen('[aria-label=server]'), 'the choices')
  await shows(/Export JSONL/)
  await press('Pause', '.top')
  await browser.evaluate(`{
    const choice = document.querySelector('[aria-label=status]')
    choice.value = 'ok'
    choice.dispatchEvent(new Event('change', { bubbles: true }))
  }`)
  await press('More', '.top')
  await until(async () => !(await isSeen('[aria-label=server]')), 'folded again')
  t.ok(await isSeen('[aria-label=status]'), 'a choice that was made can be seen')
  t.ok(await isSeen('.top [aria-pressed=true]'), 'as a button that is pressed')
  t.same(await problems(browser), [], 'axe-core finds nothing')
  withoutMistakes()
})

t.test('tools have descriptions, and long parts of a server are folded', { skip: noBrowser }, async (t) => {
  const { browser, shows, withoutMistakes } = await openTry(t, { everything })
  await shows(/echo\nEchoes back the input string/)
  await browser.evaluate(`location.hash = '#/servers'`)
  await until(() => browser.evaluate(`Boolean(document.querySelector('.card .tools'))`), 'the tools')
  // The first card is that of the bridge itself.
  const text = () => browser.evaluate<string>(`document.querySelector('.card:has(.tools)').innerText`)
  t.match(await text(), /outside calls \d+/)
  t.notMatch(await text(), /bridge → server: initialize/, 'messages are folded')
  t.notMatch(await text(), /Echoes back the input string/, 'tools, too')
  await browser.evaluate(
    `for (const one of document.querySelectorAll('.card > details, .card .tools')) one.open = true`,
  )
  await until(async () => /bridge → server: initialize/.test(await text()), 'the messages')
  t.match(await text(), /echo Echoes back the input string/)
  t.same(await problems(browser), [], 'axe-core finds nothing')
  withoutMistakes()
})
