/** The answers of the placeholder to methods that it has, and to those that it has not. */
import t from 'tap'
import { isOfPlaceholder, placeholderResult } from '../../src/services/oauth/placeholder.js'

const SERVER = { name: 'notes', loginName: 'notes', page: undefined }

t.test('each list is empty, except for the tool that signs in', async (t) => {
  t.match(placeholderResult('tools/list', SERVER), { tools: [{ name: String }] })
  for (const [method, key] of [
    ['prompts/list', 'prompts'],
    ['resources/list', 'resources'],
    ['resources/templates/list', 'resourceTemplates'],
  ] as const) {
    t.ok(isOfPlaceholder(method))
    t.same(placeholderResult(method, SERVER), { [key]: [] })
  }
})

t.test('a method that is named like a member of every object is not of the placeholder', async (t) => {
  for (const method of ['constructor', 'toString', '__proto__', 'tasks/list']) {
    t.notOk(isOfPlaceholder(method), method)
    t.equal(placeholderResult(method, SERVER), undefined, method)
  }
})
