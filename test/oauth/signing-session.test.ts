/** A client's own session with a server that people sign in to is, but for its requests, the session with the server. */
import t from 'tap'
import { EMPTY } from '../../src/base/rpc/splice.js'
import type { Account } from '../../src/mcp/protocol/account.js'
import type { DirectSession } from '../../src/mcp/protocol/upstream.js'
import { SigningSession } from '../../src/services/oauth/signing-session.js'

/** Every member of a session; a new one has to be added here, and then to the session. */
type Members = Required<{ [Member in keyof DirectSession]: unknown }>

t.test('passes on everything that a session has', async (t) => {
  const asked: string[] = []
  const answer = (name: string) => () => {
    asked.push(name)
    return name
  }
  const direct: Members = {
    opened: answer('opened'),
    revision: '2025-11-25',
    ask: answer('ask'),
    notify: answer('notify'),
    respond: answer('respond'),
    attach: answer('attach'),
    listen: answer('listen'),
    keepsIds: true,
    batchOf: answer('batchOf'),
    left: { revision: '2025-11-25', offered: '{}', ready: true },
    leave: answer('leave'),
    agreed: { offered: '{}', ready: true, logLevel: 'info', uris: ['test://x'] },
    close: answer('close'),
    closed: Promise.resolve(204),
  }
  const session = new SigningSession(direct as DirectSession, {} as Account, EMPTY) as unknown as Members
  const called: string[] = []
  for (const [name, member] of Object.entries(direct)) {
    const own = session[name as keyof Members]
    if (typeof member !== 'function') t.equal(own, member, name)
    else if (typeof own === 'function') {
      called.push(name)
      await own.call(session, {}, {}, {}, {})
    } else t.fail(`${name} is missing`)
  }
  t.same(asked, called)
})
