import t from 'tap'
import { notActedOn, refusalOf, saidIn, saidToCallers } from '../../src/mcp/protocol/refusal.js'

const refusal = (status: number, headers: Record<string, string> = {}, body = '') =>
  refusalOf(status, (name) => headers[name], body)

t.test('a status proves that nothing was executed only where HTTP says so', async (t) => {
  for (const status of [301, 302, 307, 400, 401, 403, 404, 405, 406, 411, 413, 415, 426, 429, 431])
    t.ok(notActedOn(refusal(status)), String(status))
  for (const status of [402, 408, 409, 410, 418, 422, 423, 499, 500, 501, 502, 503, 504, 520, 599])
    t.notOk(notActedOn(refusal(status)), String(status))
  for (const later of ['0', '120', 'Wed, 21 Oct 2065 07:28:00 GMT'])
    t.ok(notActedOn(refusal(503, { 'retry-after': later })), later)
  t.notOk(notActedOn(refusal(503, { 'retry-after': 'soon' })))
})

t.test('reads the time of a retry as seconds and as a date', async (t) => {
  const seconds = (text: string) => refusal(503, { 'retry-after': text }).retryAfter
  t.equal(seconds('7'), 7)
  t.equal(seconds('-7'), 0)
  t.equal(seconds('Wed, 21 Oct 2015 07:28:00 GMT'), 0)
  t.ok(Number(seconds(new Date(Date.now() + 60_000).toUTCString())) > 50)
  t.equal(seconds('x'), undefined)
})

t.test("shows 200 printable characters of a server's text, in one line", async (t) => {
  const page = refusal(500, { 'content-type': 'text/html' }, '\n<h1>\u001b[1m Down\u202e </h1>\n'.padEnd(500, 'x'))
  t.match(saidIn(page), /^<h1>\?\[1m Down\? <\/h1> x+…$/)
  t.equal(saidIn(page)?.length, 201)
  t.equal(saidToCallers(page), undefined)
  t.equal(saidToCallers(refusal(500, {}, 'no type')), undefined)
  t.equal(saidToCallers(refusal(500, { 'content-type': 'Text/Plain; charset=utf-8' }, ' a\r\n b ')), 'a b')
  t.equal(saidToCallers(refusal(500, { 'content-type': 'application/json' }, ' \n')), undefined)
})
