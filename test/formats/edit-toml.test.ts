/** Changes in the text of TOML files: the value is as it should be, and all other bytes stay. */
import t from 'tap'
import { type FileChange, Uneditable } from '../../src/config/formats/edit.js'
import { editableToml } from '../../src/config/formats/edit-toml.js'

const KEYS = ['s', 'a']
const BY: FileChange = {
  key: 'url',
  by: [
    ['command', 'x'],
    ['args', ['y', '"\\\u007f\n']],
  ],
}

t.test('replaces a pair in place, whatever the form of the tables around it', async (t) => {
  const cases: [before: string, after: string][] = [
    ['[s.a]\nurl = "u" # c\n', '[s.a]\ncommand = "x"\nargs = ARGS # c\n'],
    ['[s.a]\r\n  url = "u"\r\nk = 1\r\n', '[s.a]\r\n  command = "x"\r\n  args = ARGS\r\nk = 1\r\n'],
    ['[s]\n"a" = { url = "u", k = 1 }', '[s]\n"a" = { command = "x", args = ARGS, k = 1 }'],
    ['s = { a = { k = 1, url = "u" } }', 's = { a = { k = 1, command = "x", args = ARGS } }'],
    ['s.a.url = "u"\n', 's.a.command = "x"\ns.a.args = ARGS\n'],
    ["[ s . 'a' ]\nurl='''u'''", '[ s . \'a\' ]\ncommand = "x"\nargs = ARGS'],
    ['[s.a]\nurl = "u"\n[s.a.more]\nk = 1\n', '[s.a]\ncommand = "x"\nargs = ARGS\n[s.a.more]\nk = 1\n'],
  ]
  const args = '["y", "\\"\\\\\\u007f\\n"]'
  for (const [before, after] of cases)
    t.equal(editableToml(before).changed(KEYS, [BY]), after.replace('ARGS', args), before)
})

t.test('removes members with their line or comma, and tables with the blank lines before them', async (t) => {
  const cases: [before: string, after: string][] = [
    ['[s.a]\nk = 1\nurl = "u"\n', '[s.a]\nk = 1\n'],
    ['[s.a]\nurl = "u" # stays\nk = 1\n', '[s.a]\n # stays\nk = 1\n'],
    ['s.a = { url = "u", k = 1 }', 's.a = { k = 1 }'],
    ['s.a = { k = 1, url = "u" }', 's.a = { k = 1 }'],
    ['[s.a]\nk = 1\n\n[s.a.url]\nx = 1 # gone\n\n[t]\n', '[s.a]\nk = 1\n\n[t]\n'],
    ['[s.a]\nk = 1\nurl.x = 1\nurl.y = 2\n', '[s.a]\nk = 1\n'],
  ]
  for (const [before, after] of cases)
    t.equal(editableToml(before).changed(KEYS, [{ key: 'url', by: [] }]), after, before)
})

t.test('inserts strings before the elements of a list', async (t) => {
  const cases: [before: string, after: string][] = [
    ['[s.a]\nargs = []', '[s.a]\nargs = ["x", "y"]'],
    ["[s.a]\nargs = ['z']", '[s.a]\nargs = ["x", "y", \'z\']'],
    ['[s.a]\nargs = [\n  "z", # c\n]', '[s.a]\nargs = [\n  "x", "y",\n  "z", # c\n]'],
  ]
  for (const [before, after] of cases)
    t.equal(editableToml(before).changed(KEYS, [{ key: 'args', before: ['x', 'y'] }]), after, before)
})

t.test('replaces a table of several parts by others, and restores it', async (t) => {
  const before = '# 1\n[s.a]\nk = 1\n\n[s.a.env]\nE = "e" # 2\n\n[t]\nx = 1979-05-27\n'
  const file = editableToml(before)
  const after = file.changed(['s'], [{ key: 'a', by: [['b c', { command: 'x', env: { A: '1' } }]] }])
  t.equal(after, '# 1\n[s."b c"]\ncommand = "x"\nenv = { A = "1" }\n[t]\nx = 1979-05-27\n'.replace('\n[t]', '\n\n[t]'))
  const again = editableToml(after).changed(['s'], [{ key: 'b c', by: [['a', { z: [1, true] }]] }])
  t.equal(editableToml(again).restored(KEYS, file), before.replace(' # 2', ''))
  t.equal(editableToml(again).restored(['s', 'none'], file), again)
})

t.test('leaves what it cannot change', async (t) => {
  const cases: [text: string, change: FileChange][] = [
    ['[s.a]\nk = 1', BY],
    ['[[s.a]]\nurl = "u"', BY],
    ['[s.a.url]\nx = 1', BY],
    ['[s.a]\nargs = "x"', { key: 'args', before: ['y'] }],
    ['[s.a]\nurl = "u"\ncommand = "there"', BY],
  ]
  for (const [text, change] of cases) t.throws(() => editableToml(text).changed(KEYS, [change]), Uneditable, text)
})
