/** A client that says that it can be asked, and not how. The number is that of test/invariants.md. */
import t from 'tap'
import { ADA, all, NAME, of, startAsker, talk } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'

t.test(
  'elicitation declared without modes means forms: the server is told so, and its form is passed on',
  async (t) => {
    const asker = await startAsker(t, 'over stdio')
    const { url } = await startBridge(t, asker.server)
    const { steps, again } = talk(url, { capabilities: { elicitation: {} } })
    const round = await steps([{ ask: [NAME] }])
    t.equal(round.keys.length, 1, 'the form is asked')
    t.same((await again(round, all(round, ADA))).said, [ADA])
    const opened = of(asker, 'initialize').map(({ params }) => (params as { capabilities: object }).capabilities)
    t.ok(opened.some((capabilities) => JSON.stringify(capabilities) === '{"elicitation":{}}'))
  },
)
