/** The token of the inspector in a configuration: where it may stand, and which texts can be one. */
import t from 'tap'
import { type ConfigSources, parseSettings } from '../../src/config/settings.js'

const SECRETS: ConfigSources = {
  env: { VIEWERS: 'a-token-of-an-environment' },
  read: (path) => `a-token-of${path.replaceAll('/', '-')}\n`,
}
const parse = (token: string) =>
  parseSettings({ mcpServers: { a: { url: 'https://a.example/mcp' } }, inspect: { token } }, SECRETS).inspect?.token

t.test('it is the content of a variable or of a file that the configuration refers to', async (t) => {
  t.equal(parse('${VIEWERS}'), 'a-token-of-an-environment')
  t.equal(parse('${file:/run/viewers}'), 'a-token-of-run-viewers')
  t.equal(parse('a-token-of-the-configuration'), 'a-token-of-the-configuration')
  t.throws(() => parse('${NOT_SET_ANYWHERE}'), {
    message: /inspect\.token: the environment variable NOT_SET_ANYWHERE is not set/,
  })
})
