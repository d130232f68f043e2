/** Fails the first time that it runs, for test/tests.test.ts. */
import { existsSync, writeFileSync } from 'node:fs'
import { env } from 'node:process'
import t from 'tap'

const { MCP_BRIDGE_TEST_RAN: ran = '' } = env
const isFirst = !existsSync(ran)
if (isFirst) writeFileSync(ran, '')
t.notOk(isFirst, 'it has run before')
