/** Which words find which tools. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { ranked } from '../../src/middle/group/ranking.js'
import { indexOf } from '../../src/middle/group/tool-index.js'

const TOOLS = [
  { name: 'github__search_code', description: 'Searches the code of all repositories' },
  { name: 'github__listPullRequests', title: 'Pull requests', description: 'Open ones, newest first' },
  { name: 'github__create_issue', description: 'Opens an issue', inputSchema: { properties: { assignee: {} } } },
  { name: 'files__read_file', description: 'Reads a file from the disk' },
  { name: 'files__write_file', description: 'Writes a file, and creates it if needed' },
  { name: 'weather__forecast', description: 'Weather of the next days' },
  { name: 'wetter__vorhersage', description: 'Überblick über das Wetter der nächsten Tage' },
  { name: 'tianqi__get', description: '查询未来几天的天气预报' },
  { name: 'x__no_text' },
]
type Named = { name: string }
const MOST = 10_000_000
const indexed = (tools: readonly object[], most = MOST) =>
  indexOf(
    tools.map((tool) => JSON.stringify(tool)),
    most,
  )
const names = async (query: string, limit = 3, tools: object[] = TOOLS) => {
  const hits = await ranked([await indexed(tools)], query, limit)
  return hits.map(({ tool }) => (tools[tool] as Named).name)
}

const cases: [query: string, first: string][] = [
  ['search code', 'github__search_code'],
  ['SEARCH', 'github__search_code'],
  ['pull requests', 'github__listPullRequests'],
  ['list pull', 'github__listPullRequests'],
  ['issues', 'github__create_issue'],
  ['assignee', 'github__create_issue'],
  ['read a file', 'files__read_file'],
  ['write a file', 'files__write_file'],
  ['files__read_file', 'files__read_file'],
  [' x__no_text ', 'x__no_text'],
  ['no_text', 'x__no_text'],
  ['forcast', 'weather__forecast'],
  ['froecast', 'weather__forecast'],
  ['repositoires', 'github__search_code'],
  ['reading files', 'files__read_file'],
  ['opening issues', 'github__create_issue'],
  ['report a bug', 'github__create_issue'],
  ['what is the weather tomorrow?', 'weather__forecast'],
  ['überblick', 'wetter__vorhersage'],
  ['ÜBERBLICK', 'wetter__vorhersage'],
  ['天气', 'tianqi__get'],
  ['readfile', 'files__read_file'],
  ['searchcode', 'github__search_code'],
  ['open pullrequests', 'github__listPullRequests'],
]
t.test('finds a tool by words of its name, title, description and arguments', async (t) => {
  for (const [query, first] of cases) t.equal((await names(query))[0], first, query)
})

t.test('finds a word with a slip that is the beginning of another one, or that no tool has', async (t) => {
  const tools = [
    { name: 'forms__get_field', description: 'A field of a form' },
    { name: 'files__read_file', description: 'Reads a file' },
    { name: 'mail__delete', description: 'Deletes a mail' },
    { name: 'files__ls', description: 'Lists a folder' },
  ]
  const slips: [query: string, first: string][] = [
    ['read a fiel', 'files__read_file'],
    ['field', 'forms__get_field'],
    ['remvoe', 'mail__delete'],
    ['trahs an email', 'mail__delete'],
    ['driectory', 'files__ls'],
  ]
  for (const [query, first] of slips) t.equal((await names(query, 1, tools))[0], first, query)
})

t.test('bounds the results, and finds nothing for words that no tool has', async (t) => {
  t.equal((await names('file', 1)).length, 1)
  t.equal((await names('github', 50)).length, 3)
  for (const query of ['', ' ', '?!', 'zzzzzz', '__proto__', 'constructor', 'toString'])
    t.same(await names(query), [], query)
  t.same(await names('x', 3, []), [])
})

t.test('ignores members of a definition that are not text', async (t) => {
  const odd = [
    { name: 'odd', title: 7, description: ['a'], inputSchema: { properties: [] } },
    { name: 'strange', description: null, inputSchema: 'x' },
    { name: '__proto__', inputSchema: { properties: { ['__proto__']: 1, constructor: 1 } } },
  ]
  t.same(await names('odd', 3, odd), ['odd'])
  t.same(await names('constructor', 3, odd), ['__proto__'])
})

t.test('truncates long queries and texts', async (t) => {
  const long = [{ name: 'long', description: `${'word '.repeat(100_000)}last` }, { name: 'short' }]
  t.same(await names('last', 3, long), [])
  const others = Array.from({ length: 32 }, (_, at) => `q${'abcdef'[at % 6]}${'ghijkl'[Math.floor(at / 6)]}`)
  t.same(await names([...others.slice(0, 31), 'short'].join(' '), 3, long), ['short'])
  t.same(await names([...others, 'short'].join(' '), 3, long), [])
})

t.test('an index ends where it has no more room', async (t) => {
  const word = (at: number) => at.toString(26).replace(/[0-9]/g, (digit) => 'qrstuvwxyz'[Number(digit)] as string)
  const distinct = (tool: number) => Array.from({ length: 50 }, (_, at) => `${word(tool * 50 + at)}zz`).join(' ')
  const tools = Array.from({ length: 100 }, (_, at) => ({ name: `t${at}`, description: distinct(at) }))
  const all = await indexed(tools)
  t.equal(all.count, tools.length)
  const half = await indexed(tools, Math.floor(all.bytes / 2))
  t.ok(half.count > 40 && half.count < 60, `${half.count} of 100 have room`)
  t.ok(half.bytes <= all.bytes / 2)
  const texts = tools.map((tool) => JSON.stringify(tool))
  const quarter = await indexOf(texts, MOST, (bytes) => bytes <= all.bytes / 4)
  t.ok(quarter.count > 20 && quarter.count < 30, `${quarter.count} of 100 have room`)
})

t.test('tools of several indexes are ranked together', async (t) => {
  const indexes = [await indexed(TOOLS.slice(0, 4)), await indexed(TOOLS.slice(4))]
  t.match(await ranked(indexes, 'write a file', 1), [{ index: 1, tool: 0 }])
  t.match(await ranked(indexes, 'create an issue', 1), [{ index: 0, tool: 2 }])
})

/** Questions about the tools of real servers, and the tools that answer them. */
const QUESTIONS: readonly [question: string, ...answers: string[]][] = [
  [
    'list folder',
    'files__list_directory',
    'm365__list-folder-files',
    'files__list_directory_with_sizes',
    'm365__list-mail-folders',
    'm365__list-contact-folders',
  ],
  ['show what is in a directory', 'files__list_directory', 'files__directory_tree', 'files__list_directory_with_sizes'],
  ['read a text file', 'files__read_text_file', 'files__read_file'],
  ['open several files at once', 'files__read_multiple_files'],
  ['rename a file', 'files__move_file', 'm365__move-rename-onedrive-item'],
  [
    'make a new folder',
    'files__create_directory',
    'm365__create-onedrive-folder',
    'm365__create-mail-folder',
    'm365__create-contact-folder',
  ],
  ['find files by pattern', 'files__search_files', 'm365__search-onedrive-files'],
  ['size and modification date of a file', 'files__get_file_info'],
  ['change some lines of a file', 'files__edit_file'],
  ['save text to a file', 'files__write_file'],
  ['view an image file', 'files__read_media_file'],
  ['which directories may I access', 'files__list_allowed_directories'],
  ['crete directory', 'files__create_directory'],
  ['serach repositories', 'github__search_repositories'],
  ['open a pull request', 'github__create_pull_request'],
  ['merge PR', 'github__merge_pull_request'],
  ['report a bug on github', 'github__create_issue'],
  ['comment on an issue', 'github__add_issue_comment'],
  ['close an issue', 'github__update_issue'],
  ['list recent commits', 'github__list_commits'],
  ['find code in all repos', 'github__search_code'],
  ['fork a repo', 'github__fork_repository'],
  ['new branch', 'github__create_branch'],
  ['did the checks of my pull request pass', 'github__get_pull_request_status'],
  ['approve a pull request', 'github__create_pull_request_review'],
  ['commit several files', 'github__push_files'],
  ['send an email', 'm365__send-mail'],
  ['reply to a message', 'm365__reply-mail-message', 'm365__create-reply-draft', 'm365__reply-all-mail-message'],
  ['unread mails in my inbox', 'm365__list-mail-messages', 'm365__list-mail-folder-messages'],
  ['attach a file to a mail', 'm365__add-mail-attachment', 'm365__create-mail-attachment-upload-session'],
  ['schedule a meeting', 'm365__create-calendar-event', 'm365__create-specific-calendar-event'],
  ['decline an invitation', 'm365__decline-calendar-event'],
  [
    'what is on my calendar tomorrow',
    'm365__get-calendar-view',
    'm365__list-calendar-events',
    'm365__get-specific-calendar-view',
    'm365__list-specific-calendar-events',
  ],
  ['add a contact', 'm365__create-outlook-contact', 'm365__create-contact-in-folder'],
  ['create todo item', 'm365__create-todo-task'],
  ['mark a task as completed', 'm365__update-todo-task', 'm365__update-planner-task'],
  ['merge cells in excel', 'm365__merge-excel-range'],
  ['draw a chart in a spreadsheet', 'm365__create-excel-chart'],
  ['share a onedrive file with someone', 'm365__share-drive-item', 'm365__create-drive-item-share-link'],
  ['previous versions of a document', 'm365__list-drive-item-versions'],
  ['write a page in onenote', 'm365__create-onenote-page', 'm365__create-onenote-section-page'],
  ['set out of office reply', 'm365__update-mailbox-settings'],
  ['snooze a reminder', 'm365__snooze-calendar-event-reminder'],
  ['take screenshot', 'playwright__browser_take_screenshot', 'devtools__take_screenshot'],
  ['click a button', 'playwright__browser_click', 'devtools__click'],
  ['go to a website', 'playwright__browser_navigate', 'devtools__navigate_page', 'devtools__new_page'],
  [
    'run javascript on the page',
    'playwright__browser_evaluate',
    'devtools__evaluate_script',
    'playwright__browser_run_code_unsafe',
  ],
  [
    'errors in the browser console',
    'playwright__browser_console_messages',
    'devtools__list_console_messages',
    'devtools__get_console_message',
  ],
  ['fill out a form', 'playwright__browser_fill_form', 'devtools__fill_form', 'devtools__fill'],
  ['which requests did the page make', 'playwright__browser_network_requests', 'devtools__list_network_requests'],
  ['record a video of the screen', 'devtools__screencast_start'],
  ['measure page speed', 'devtools__performance_start_trace', 'devtools__lighthouse_audit'],
  ['find memory leaks', 'devtools__take_heapsnapshot'],
  ['logs of a pod', 'kubernetes__kubectl_logs'],
  ['restart a deployment', 'kubernetes__kubectl_rollout'],
  ['run a command in a container', 'kubernetes__exec_in_pod'],
  ['instal helm chart', 'kubernetes__install_helm_chart'],
  ['remember a fact about someone', 'memory__add_observations', 'memory__create_entities'],
  ['append text to a notion page', 'notion__API-patch-block-children', 'notion__API-update-page-markdown'],
  ['think through a problem step by step', 'thinking__sequentialthinking'],
]

t.test('of 60 questions about 342 real tools, 9 of 10 find the right one in the first five results', async (t) => {
  const text = readFileSync(new URL('../fixtures/real-tools.json', import.meta.url), 'utf8')
  const { servers } = JSON.parse(text) as { servers: { server: string; tools: (Named & { arguments: string[] })[] }[] }
  const lists = servers.map(({ server, tools }) =>
    tools.map(({ name, arguments: args, ...tool }) => {
      const properties = Object.fromEntries(args.map((each) => [each, {}]))
      return { ...tool, name: `${server}__${name}`, inputSchema: { properties } }
    }),
  )
  const known = new Set(lists.flat().map(({ name }) => name))
  t.equal(known.size, 342)
  const indexes = await Promise.all(lists.map((tools) => indexed(tools)))
  const failed: string[] = []
  for (const [question, ...answers] of QUESTIONS) {
    t.same(
      answers.filter((name) => !known.has(name)),
      [],
    )
    const hits = await ranked(indexes, question, 5)
    const found = hits.map(({ index, tool }) => lists[index]?.[tool]?.name ?? '')
    if (!answers.some((name) => found.includes(name))) failed.push(`${question}: ${found.join(', ')}`)
  }
  t.equal(QUESTIONS.length, 60)
  t.ok(failed.length <= 6, failed.join('\n'))
})
