/** The inspector names the tool that ran through `call_tool`. */
import t from 'tap'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { Ring } from '../../src/inspector/ring.js'
import { Views } from '../../src/inspector/views.js'
// @ts-expect-error: plain JavaScript, because servers on stdio run it without any loader
import { QUESTIONS } from '../fixtures/modern-questions.mjs'
import type { Json } from '../matrix/client.js'
import { CLIENTS, connect } from '../matrix/clients.js'
import { nameOf } from '../matrix/run.js'
import { createBridge } from '../support/bridge.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { ModernHttp } from '../support/modern-http.js'
import { eventsIn } from '../support/sights.js'

for (const kind of CLIENTS.filter(({ transport }) => transport === 'HTTP'))
  t.test(
    `${nameOf(kind)} client: a call through call_tool is shown as a call of its tool, even if it asks`,
    async (t) => {
      const [old, fresh] = [await LegacyHttp.start(t, { asks: true }), await ModernHttp.start(t)]
      const ring = new Ring({ payloads: 'all' })
      const recorder = new EventRecorder((trace, text) => ring.record(trace, text))
      const settings = {
        mcpServers: { old: { url: old.url }, fresh: { url: fresh.url } },
        groups: { team: { search: true } },
      }
      const { bridge, log } = createBridge(t, {}, settings, { recorder })
      await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
      const client = connect(
        kind,
        { url: bridge.groupUrls.get('team') ?? '', bridge, log },
        {
          capabilities: { elicitation: { form: {} } },
          answers: () => ({ action: 'accept', content: { name: 'Zoë' } }),
        },
      )
      await client.open()
      const rounds = [{ name: (QUESTIONS as Json)['name'] }]
      const names = ['old__ask', 'fresh__ask', 'old__echo']
      for (const name of names)
        await client.call('tools/call', { name: 'call_tool', arguments: { name, arguments: { rounds } } })
      await client.close()
      await bridge.close()
      const views = new Views()
      for (const seen of eventsIn(ring)) views.add(seen)
      const calls = [...views.calls.values()].filter(({ method }) => method === 'tools/call')
      t.same(
        calls.map(({ name, rounds, status }) => [name, rounds > 0, status]),
        [
          ['old__ask', true, 'ok'],
          ['fresh__ask', true, 'ok'],
          ['old__echo', false, 'ok'],
        ],
      )
    },
  )
