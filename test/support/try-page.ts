/** The view Try of the page of the program, in front of a person: a real browser, real servers, the built bridge. */
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { execPath } from 'node:process'
import type { Test } from 'tap'
import { says, startProgram } from './cli.js'
import { until } from './eventually.js'
import { temporaryFolder } from './folder.js'
import { TOKEN } from './inspector.js'
import { newPage } from './inspector-page.js'

const EVERYTHING = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js')
export const everything = { command: execPath, args: [EVERYTHING, 'stdio'] }

/** The page of the program with these servers, in front of a person, at the view Try unless `view` is another fragment. */
export async function openTry(
  t: Test,
  mcpServers: object,
  more: { width?: number; scheme?: string; settings?: object; view?: string } = {},
) {
  const file = join(temporaryFolder(t), 'mcp.json')
  const settings = {
    listen: 'http://127.0.0.1:0/mcp',
    admin: 'http://127.0.0.1:0',
    inspect: { token: TOKEN, try: true, payloads: 'all' },
    log: { format: 'json', level: 'info' },
    ...more.settings,
  }
  writeFileSync(file, JSON.stringify({ ...settings, mcpServers }))
  const program = startProgram(t, ['--config', file])
  const [, url = ''] = await says(program, /"event":"listening"[^\n]*?"url":"([^"]+)"/)
  const [, admin = ''] = await says(program, /"event":"admin_listening"[^\n]*?"url":"([^"]+)"/)
  const browser = await newPage()
  await browser.emulate(more)
  await browser.open('about:blank')
  browser.mistakes.length = 0
  browser.requests.length = 0
  const { origin } = new URL(admin)
  await browser.open(`${origin}/inspect#${TOKEN}`)
  await browser.evaluate(`location.hash = ${JSON.stringify(more.view ?? '#/try')}`)
  const shows = (text: RegExp) => until(async () => text.test(await browser.text()), `the page shows ${text}`)
  /** Presses the button with this text, in an element if it is given. */
  const press = async (text: string, within = 'body') => {
    const one = `[...document.querySelectorAll(${JSON.stringify(`${within} button`)})].find((one) => one.textContent.trim().startsWith(${JSON.stringify(text)}))`
    await until(() => browser.evaluate<boolean>(`Boolean(${one})`), `the button ${text}`)
    await browser.evaluate(`${one}.click()`)
  }
  const asks = (text: RegExp) => until(async () => text.test(await browser.text()), `the page asks ${text}`)
  /** Puts a text into the field with this label, in sight or not. */
  const fill = (label: string, text: string) =>
    browser.evaluate(`{
      const named = [...document.querySelectorAll('.trying label')].find((one) => one.textContent.trim().startsWith(${JSON.stringify(label)}))
      const field = named ? document.getElementById(named.htmlFor) : document.querySelector(${JSON.stringify(`.trying [aria-label="${label}"]`)})
      field.value = ${JSON.stringify(text)}
      field.dispatchEvent(new Event(field.tagName === 'SELECT' ? 'change' : 'input', { bubbles: true }))
      0
    }`)
  /** Puts the arguments of the chosen tool as JSON. */
  const fillJson = async (json: string) => {
    const field = `document.querySelector('.trying textarea[aria-label="Arguments as JSON"]')`
    if (!(await browser.evaluate<boolean>(`Boolean(${field})`))) await press('Edit as JSON', '.trying')
    await until(() => browser.evaluate<boolean>(`Boolean(${field})`), 'the field for JSON')
    await browser.evaluate(`{
      const field = ${field}
      field.value = ${JSON.stringify(json)}
      field.dispatchEvent(new Event('input', { bubbles: true }))
      0
    }`)
  }
  /** Takes the value in one of the two choices at the left. */
  const take = async (which: 0 | 1, value: string) => {
    const option = `[...(document.querySelectorAll('.choosing select')[${which}]?.options ?? [])].find((one) => one.value === ${JSON.stringify(value)})`
    await until(() => browser.evaluate<boolean>(`Boolean(${option})`), `the choice ${value}`)
    await browser.evaluate(`{
      const choice = ${option}.parentElement
      choice.value = ${JSON.stringify(value)}
      choice.dispatchEvent(new Event('change', { bubbles: true }))
      0
    }`)
  }
  const choose = (server: string) => take(0, server)
  const as = (revision: string) => take(1, revision)
  const withoutMistakes = () => {
    t.same(browser.mistakes, [], 'no error and no violation of the policy')
    t.same(
      browser.requests.filter((url) => !url.startsWith(origin) && url !== 'about:blank' && !url.startsWith('blob:')),
      [],
      'no request to another host',
    )
  }
  return { url, browser, shows, asks, press, fill, fillJson, choose, as, withoutMistakes }
}
