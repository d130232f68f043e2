/** The resources of the legacy server: some that are listed, and a template. */
import {
  McpError,
  type ReadResourceResult,
  type Resource,
  type ResourceTemplate,
} from '@modelcontextprotocol/sdk/types.js'
import { PNG } from './content.js'

/** What was the code for a resource that is not there, before 2026-07-28. */
const RESOURCE_NOT_FOUND = -32002

const readable: readonly (Resource & ({ text: string } | { blob: string }))[] = [
  {
    uri: 'test://static-text',
    name: 'Static text',
    description: 'Text that is always the same',
    mimeType: 'text/plain',
    text: 'This is the content of the static text resource.',
  },
  {
    uri: 'test://static-binary',
    name: 'Static binary',
    description: 'An image that is always the same',
    mimeType: 'image/png',
    blob: PNG,
  },
  {
    uri: 'test://watched-resource',
    name: 'Watched resource',
    description: 'Something to subscribe to',
    mimeType: 'text/plain',
    text: 'Nothing has happened yet.',
  },
]

export const resources: Resource[] = readable.map(({ uri, name, description, mimeType }) => ({
  uri,
  name,
  description,
  mimeType,
}))

export const templates: ResourceTemplate[] = [
  {
    uriTemplate: 'test://template/{id}/data',
    name: 'Template',
    description: 'Data for any id',
    mimeType: 'application/json',
  },
]

/** Throws an McpError where there is nothing under the URI. */
export function readResource(uri: string): ReadResourceResult {
  const found = readable.find((resource) => resource.uri === uri)
  if (found) {
    const { mimeType } = found
    return { contents: ['text' in found ? { uri, mimeType, text: found.text } : { uri, mimeType, blob: found.blob }] }
  }
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1]
  if (id === undefined) throw new McpError(RESOURCE_NOT_FOUND, 'Resource not found', { uri })
  const data = { id, templateTest: true, data: `Data for ID: ${id}` }
  return { contents: [{ uri, mimeType: 'application/json', text: JSON.stringify(data) }] }
}
