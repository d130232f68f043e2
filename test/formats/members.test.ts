/** Members of a file that people write: put in and taken out, with everything else as it was. */
import { parse } from 'jsonc-parser'
import t from 'tap'
import { withMember, withoutMember } from '../../src/config/formats/members.js'

const put = (text: string, name = 'b') => withMember(text, 'mcpServers', name, { url: 'u', env: { A: '1' } })
const take = (text: string, name = 'b') => withoutMember(text, 'mcpServers', name)

t.test('a member is put at the end, in the form of the file', async (t) => {
  const member = '"b": {\n      "url": "u",\n      "env": {\n        "A": "1"\n      }\n    }'
  const cases: [name: string, text: string, expected: string][] = [
    [
      'after others',
      '{\n  "mcpServers": {\n    "a": {}\n  }\n}\n',
      `{\n  "mcpServers": {\n    "a": {},\n    ${member}\n  }\n}\n`,
    ],
    [
      'with comments and a trailing comma',
      '// mine\n{\n  "mcpServers": {\n    "a": {}, // the first, and { "no": 1 }\n    /* last */\n  },\n  "listen": "stdio"\n}\n',
      `// mine\n{\n  "mcpServers": {\n    "a": {}, // the first, and { "no": 1 }\n    ${member},\n    /* last */\n  },\n  "listen": "stdio"\n}\n`,
    ],
    [
      'after a comment without a comma',
      '{\n  "mcpServers": {\n    "a": {} // the first\n  }\n}',
      `{\n  "mcpServers": {\n    "a": {}, // the first\n    ${member}\n  }\n}`,
    ],
    ['into an empty object', '{\n  "mcpServers": {}\n}', `{\n  "mcpServers": {\n    ${member}\n  }\n}`],
    ['in one line', '{ "mcpServers": { "a": {} } }', '{ "mcpServers": { "a": {}, "b": {"url":"u","env":{"A":"1"}} } }'],
  ]
  for (const [name, text, expected] of cases) t.equal(put(text), expected, name)
  t.same(parse(put('{}')), { mcpServers: { b: { url: 'u', env: { A: '1' } } } })
  t.same(parse(put('{ "listen": "stdio" }')), { listen: 'stdio', mcpServers: { b: { url: 'u', env: { A: '1' } } } })
  t.match(put('{\r\n\t"mcpServers": {\r\n\t\t"a": {}\r\n\t}\r\n}'), '"a": {},\r\n\t\t"b": {\r\n\t\t\t"url": "u",\r\n')
  t.equal(put('\uFEFF{}').codePointAt(0), 0xfeff)
})

t.test('what was put in can be taken out again, byte for byte', async (t) => {
  const texts = [
    '{\n  "mcpServers": {\n    "a": {}\n  }\n}\n',
    '{\n  "mcpServers": {\n    "a": {}, // one\n    /* last */\n  }\n}\n',
    '{\n  "mcpServers": {\n    "a": {} // one\n  }\n}\n',
    '{ "mcpServers": { "a": {} } }',
    '{\r\n\t"mcpServers": {\r\n\t\t"a": {}\r\n\t}\r\n}',
    '\uFEFF{\n  "mcpServers": {\n    "a": {}\n  }\n}\n',
  ]
  for (const text of texts) t.equal(take(put(text)), text, JSON.stringify(text))
})

t.test('only the member and the comment beside it are taken out', async (t) => {
  const cases: [text: string, name: string, expected: string][] = [
    [
      '{\n  "mcpServers": {\n    // of a\n    "a": {}, // a\n    "b": {\n      "x": 1\n    }, // b\n    // of c\n    "c": {} // c\n  }\n}',
      'b',
      '{\n  "mcpServers": {\n    // of a\n    "a": {}, // a\n    // of c\n    "c": {} // c\n  }\n}',
    ],
    [
      '{\n  "mcpServers": {\n    "a": {}, // a\n    "c": {} // c\n  }\n}',
      'c',
      '{\n  "mcpServers": {\n    "a": {} // a\n  }\n}',
    ],
    ['{\n  "mcpServers": {\n    "a": {},\n    "c": {},\n  }\n}', 'c', '{\n  "mcpServers": {\n    "a": {},\n  }\n}'],
    ['{ "mcpServers": { "a": {}, "b": {} } }', 'a', '{ "mcpServers": { "b": {} } }'],
    ['{ "mcpServers": { "a": {} } }', 'a', '{ "mcpServers": {  } }'],
    ['{ "mcpServers": { "a": {} } }', 'x', '{ "mcpServers": { "a": {} } }'],
    ['{ "listen": "stdio" }', 'x', '{ "listen": "stdio" }'],
  ]
  for (const [text, name, expected] of cases) t.equal(take(text, name), expected, JSON.stringify(text))
})
