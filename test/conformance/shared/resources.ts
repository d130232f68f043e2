/** The resources of the reference servers: some that are listed, and a template. */
import { PNG } from './content.js'
import { part } from './part.js'

export interface Resource {
  uri: string
  name: string
  description: string
  mimeType: string
}

type Contents = { uri: string; mimeType: string } & ({ text: string } | { blob: string })

const readable = part<Resource & ({ text: string } | { blob: string })>([
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
])

export const resources: Resource[] = readable.map(({ uri, name, description, mimeType }) => ({
  uri,
  name,
  description,
  mimeType,
}))

export const templates = part([
  {
    uriTemplate: 'test://template/{id}/data',
    name: 'Template',
    description: 'Data for any id',
    mimeType: 'application/json',
  },
])

/** What is under a URI; undefined where there is nothing. */
export function readResource(uri: string): { contents: Contents[] } | undefined {
  const found = readable.find((resource) => resource.uri === uri)
  if (found) {
    const { mimeType } = found
    return { contents: ['text' in found ? { uri, mimeType, text: found.text } : { uri, mimeType, blob: found.blob }] }
  }
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1]
  if (id === undefined || templates.length === 0) return undefined
  const data = { id, templateTest: true, data: `Data for ID: ${id}` }
  return { contents: [{ uri, mimeType: 'application/json', text: JSON.stringify(data) }] }
}
