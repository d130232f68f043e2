/** Addresses are parsed in one way, which does not change while the bridge runs. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parseAddress } from '../../src/base/net/address.js'
import { parseUrl } from '../../src/base/texts/parse-url.js'
import { isShowable } from '../../src/mcp/protocol/input.js'
import { addresses } from '../../src/middle/policy/choice/addresses.js'

/** So often that Node.js compiles what calls it. */
const OFTEN = 100_000
const source = fileURLToPath(new URL('../../src/', import.meta.url))

t.test('an address with a letter like ü stays valid after many calls', async (t) => {
  const address = 'https://bücher.example/mcp'
  const isShown = addresses({ allow: undefined, deny: ['https://bücher.example/mcp'] })
  const asks: Record<string, () => boolean> = {
    parseUrl: () => parseUrl(address)?.hostname === 'xn--bcher-kva.example',
    parseAddress: () => parseAddress(address).hostname === 'xn--bcher-kva.example',
    isShowable: () => isShowable(address),
    'a hidden resource stays hidden': () => !isShown('https://user:ü@bücher.example/mcp'),
  }
  for (const [name, ask] of Object.entries(asks)) {
    let wrong = 0
    for (let i = 0; i < OFTEN; i++) if (!ask()) wrong++
    t.equal(wrong, 0, name)
  }
})

t.test('an invalid address is undefined, and a relative one is resolved', async (t) => {
  t.equal(parseUrl('no address'), undefined)
  t.equal(parseUrl('/x'), undefined)
  t.equal(parseUrl('/x', 'https://a.example/y')?.href, 'https://a.example/x')
  t.equal(parseUrl('http://[', new URL('https://a.example')), undefined)
})

t.test('no code uses URL.canParse, whose answers on Node.js 20 are wrong', async (t) => {
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) => /\.tsx?$/.test(name))
  t.ok(files.length > 100)
  t.same(
    files.filter((name) => readFileSync(source + name, 'utf8').includes('URL.canParse(')),
    [],
  )
})
