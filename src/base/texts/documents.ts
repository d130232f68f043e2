/** Where the docs are, for people who have only the program. */
export const DOCUMENTS = 'https://github.com/mcp-bridge/mcp-bridge/blob/main/docs/'
