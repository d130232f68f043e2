/** The bridge is restarted under load, again and again: every client knows of every call whether it ran. */
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { says, startProgram } from '../support/cli.js'
import { PATIENCE, pause, until } from '../support/eventually.js'
import { temporaryFile, temporaryFolder } from '../support/folder.js'
import { freePort } from '../support/free-port.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { envelope, headersFor } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'

const CLIENTS = 40
const RESTARTS = 20
/** Answered calls between two restarts. */
const BETWEEN = 200

interface Tally {
  answered: number
  /** Answers that say that the call was not executed, because the bridge is shutting down. */
  refused: number
  /** Nobody listened: the call was not sent. */
  unreachable: number
  /** Neither: nobody knows whether the call ran. */
  lost: string[]
}

/** A client that keeps its connection, and calls again as soon as it has an answer. */
async function callAgainAndAgain(tally: Tally, next: () => { url: string; name: string } | undefined): Promise<void> {
  const agent = new Agent({ keepAlive: true })
  for (let target = next(); target; target = next()) {
    try {
      const { status, text } = await callTool(agent, target)
      if (status === 200 && text.includes('"result"')) tally.answered++
      else if (text.includes('"not_executed"')) tally.refused++
      else tally.lost.push(`${status} ${text}`)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') {
        tally.unreachable++
        await pause(100)
      } else tally.lost.push(String((error as NodeJS.ErrnoException).code ?? error))
    }
  }
  agent.destroy()
}

function callTool(agent: Agent, { url, name }: { url: string; name: string }) {
  const params = { name, arguments: { key: crypto.randomUUID() } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...params, _meta: envelope() } })
  return new Promise<{ status: number; text: string }>((resolve, reject) => {
    const headers = headersFor('tools/call', params)
    const sent = request(url, { method: 'POST', agent, headers }, (response) => {
      text(response).then((text) => resolve({ status: response.statusCode ?? 0, text }), reject)
    })
    sent.setTimeout(PATIENCE, () => sent.destroy(new Error('no answer')))
    sent.on('error', reject).end(body)
  })
}

for (const [circumstances, drainDelay] of [
  ['that stops at once', 0],
  ['that goes on for a while before it stops', 300],
] as const)
  t.test(`${RESTARTS} restarts of a bridge ${circumstances} cut off none of ${CLIENTS} clients`, async (t) => {
    const executions = join(temporaryFolder(t), 'executions')
    const modern = await ModernHttp.start(t)
    const origin = `http://127.0.0.1:${await freePort()}`
    const mcpServers = { program: legacyStdio(t, { executions }).server, http: { url: modern.url, era: 'modern' } }
    const file = temporaryFile(t, 'mcp.json', { mcpServers, timeouts: { drainDelay }, listen: `${origin}/mcp` })
    const start = async () => {
      const program = startProgram(t, ['--config', file])
      await says(program, /"event":"listening".*\n.*"event":"listening"/)
      return program
    }
    let bridge = await start()
    const tally: Tally = { answered: 0, refused: 0, unreachable: 0, lost: [] }
    let over = false
    t.teardown(() => {
      over = true
    })
    const targets = [
      { url: `${origin}/program/mcp`, name: 'act' },
      { url: `${origin}/http/mcp`, name: 'echo' },
    ] as const
    const clients = Array.from({ length: CLIENTS }, (_, i) =>
      callAgainAndAgain(tally, () => (over ? undefined : targets[i % 2])),
    )
    for (let restarts = 0; restarts < RESTARTS; restarts++) {
      const before = tally.answered
      await until(() => tally.answered >= before + BETWEEN, 'the answers of the bridge')
      bridge.child.kill('SIGTERM')
      t.equal(await bridge.ended, 0)
      bridge = await start()
    }
    over = true
    await Promise.all(clients)
    t.same(tally.lost, [], `${tally.answered} answered, ${tally.refused} refused, ${tally.unreachable} unreachable`)
    t.ok(tally.answered >= RESTARTS * BETWEEN)
    const ran = readFileSync(executions, 'utf8').split('\n').filter(Boolean)
    t.equal(new Set(ran).size, ran.length, 'nothing ran twice')
  })
