/** Published servers of different generations of the SDK and of different frameworks. They run without network and keys. */
import type { Package } from './install.js'

type Json = Record<string, unknown>

export interface FieldServer extends Package {
  /** What it is made with. */
  madeWith: string
  args?: readonly string[]
  env?: Record<string, string>
  /** Calls of its tools that give the same each time. */
  calls: readonly (readonly [tool: string, args: Json])[]
  prompts?: readonly (readonly [name: string, args: Json])[]
  /** It speaks 2026-07-28 itself, and does not tell a modern client the same as a legacy one. */
  modern?: true
}

const thought = { thought: 'A bridge', thoughtNumber: 1, totalThoughts: 2, nextThoughtNeeded: true }

export const servers: readonly FieldServer[] = [
  {
    name: '@modelcontextprotocol/server-sequential-thinking',
    version: '0.6.2',
    madeWith: 'SDK 0.5',
    calls: [
      ['sequentialthinking', thought],
      ['sequentialthinking', { thought: 7 }],
    ],
  },
  {
    name: '@modelcontextprotocol/server-memory',
    version: '0.6.2',
    madeWith: 'SDK 1.0',
    calls: [
      ['read_graph', {}],
      ['search_nodes', { query: 'bridge' }],
      ['add_observations', { observations: [{ entityName: 'nobody', contents: ['is'] }] }],
    ],
  },
  {
    name: '@modelcontextprotocol/server-everything',
    version: '2025.8.18',
    madeWith: 'SDK 1, low-level class',
    calls: [
      ['echo', { message: 'Grüezi' }],
      ['add', { a: 1, b: 2 }],
      ['add', { a: 'one' }],
      ['getTinyImage', {}],
      ['annotatedMessage', { messageType: 'error', includeImage: true }],
      ['structuredContent', { location: 'Bern' }],
      ['getResourceLinks', { count: 3 }],
    ],
    prompts: [
      ['simple_prompt', {}],
      ['complex_prompt', { temperature: '1', style: 'formal' }],
      ['resource_prompt', { resourceId: '3' }],
      ['complex_prompt', {}],
    ],
  },
  {
    name: '@eslint/mcp',
    version: '0.3.13',
    madeWith: 'SDK 1, high-level class',
    calls: [
      ['lint-files', { filePaths: ['/nowhere/at-all.js'] }],
      ['lint-files', { filePaths: 7 }],
    ],
  },
  {
    name: '@antv/mcp-server-chart',
    version: '0.9.10',
    madeWith: 'SDK 1 with schemas of zod 3',
    calls: [
      ['generate_pie_chart', { data: 'none' }],
      ['generate_bar_chart', { data: [{ category: 7 }] }],
    ],
  },
  {
    name: 'firecrawl-mcp',
    version: '3.26.0',
    madeWith: 'fastmcp 4',
    env: { FIRECRAWL_API_KEY: 'fc-none', FIRECRAWL_API_URL: 'http://127.0.0.1:9' },
    calls: [['firecrawl_scrape', { url: 7 }]],
  },
  {
    name: '@cyanheads/git-mcp-server',
    version: '2.15.3',
    madeWith: 'a framework with an SDK of its own',
    env: { MCP_LOG_LEVEL: 'error' },
    calls: [
      ['git_status', { path: '/nowhere/at-all' }],
      ['git_log', { maxCount: 'many' }],
    ],
  },
  {
    name: '@upstash/context7-mcp',
    version: '4.1.1',
    madeWith: 'SDK 2',
    calls: [
      ['resolve-library-id', {}],
      ['query-docs', { libraryId: 7 }],
    ],
    modern: true,
  },
]
