/**
 * What an extension asks its user: addresses, headers, variables, folders and secrets of a configuration become references to
 * variables, whose values the host takes from the user.
 */

import { withoutCredentials } from '../../base/credentials/credentials.js'
import { isSecret, isSecretFlag } from '../../base/credentials/names.js'
import { isObject } from '../../config/value.js'

/** One value that the user gives. */
export interface Question {
  /** The environment variable in which the bridge gets it. */
  variable: string
  type: 'string' | 'directory'
  title: string
  description: string
  /** The host hides and encrypts it. */
  sensitive: boolean
  /** Undefined if only the user knows it. */
  default: string | undefined
}

/** The entries of servers with references in place of what the user gives, and the questions. */
export interface WithQuestions {
  servers: Record<string, unknown>
  questions: readonly Question[]
}

/** Whether a path is that of a folder of this machine. */
export type IsFolder = (path: string) => boolean

/** A reference in a configuration, or an escaped one. */
const REFERENCE = /\$\$\{|\$\{(?:file:([^}]+)|(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?)\}/g
/** A flag of a program with its value in the same word. */
const FLAG_WITH_VALUE = /^(--?[A-Za-z][\w-]*)=(?=.)/
/** What stands before a credential in a header. */
const SCHEME = /^(?:Bearer|Basic|Token) (?=\S)/i

/** Where a text stands in the entry of a server. */
interface Place {
  server: string
  keys: readonly string[]
  /** The text before it in a list. */
  before?: unknown
}

/** Finds the questions of entries of servers, which are as in a configuration file. */
export function asked(servers: Readonly<Record<string, unknown>>, isFolder: IsFolder): WithQuestions {
  const questions = new Map<string, Question>()
  const ask = (question: Question): string => {
    if (!questions.has(question.variable)) questions.set(question.variable, question)
    return `\${${question.variable}}`
  }
  const changed = (value: unknown, place: Place): unknown => {
    if (typeof value === 'string') return asking(value, place, ask, isFolder)
    if (Array.isArray(value))
      return value.map((item, at) => changed(item, { ...below(place, String(at)), before: value[at - 1] as unknown }))
    if (!isObject(value)) return value
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, changed(item, below(place, key))]))
  }
  const entries = Object.entries(servers).map(([server, entry]) => [server, changed(entry, { server, keys: [] })])
  return { servers: Object.fromEntries(entries) as Record<string, unknown>, questions: [...questions.values()] }
}

function below({ server, keys }: Place, key: string): Place {
  return { server, keys: [...keys, key] }
}

/** A text of an entry with references in place of what the user gives. */
function asking(text: string, place: Place, ask: (question: Question) => string, isFolder: IsFolder): string {
  const { server, keys, before } = place
  const [option = '', name = ''] = keys
  const of = useOf(place)
  const question = (variable: string, more: Partial<Question> = {}): string =>
    ask({
      variable,
      type: 'string',
      title: variable,
      description: `${of} of the server ${server}`,
      sensitive: true,
      default: undefined,
      ...more,
    })
  const own = variableOf(server, ...keys)
  let refers = false
  const referred = text.replace(REFERENCE, (all, file?: string, variable?: string, fallback?: string) => {
    refers ||= file !== undefined || variable !== undefined
    if (file !== undefined) return question(own, { title: titleOf(place) })
    if (variable === undefined) return all
    // What has a default in the open is no secret.
    return question(variable, fallback === undefined ? {} : { default: fallback, sensitive: isSecret(variable) })
  })
  if (refers) return referred
  if ((option === 'args' || option === 'cwd') && isFolder(text))
    return question(own, { type: 'directory', title: `Folder of ${server}`, sensitive: false })
  if (option === 'url') {
    const isOpen = withoutCredentials(text) === text
    return question(own, { title: titleOf(place), sensitive: !isOpen, default: isOpen ? text : undefined })
  }
  if (option === 'args') {
    const [flag = '', flagName = ''] = FLAG_WITH_VALUE.exec(text) ?? []
    if (isSecretFlag(flagName)) return flag + question(own, { title: `${flagName} of ${server}` })
    if (typeof before !== 'string' || !isSecretFlag(before)) return text
    return question(own, { title: `${before} of ${server}` })
  }
  const isHeader = option === 'headers'
  if (!isHeader && option !== 'env' && !isSecret(keys.at(-1) ?? '')) return text
  const isOpen = !isSecret(name) && withoutCredentials(text) === text
  const asksFor = { title: titleOf(place), sensitive: !isOpen, default: isOpen ? text : undefined }
  const scheme = isHeader ? SCHEME.exec(text)?.[0] : undefined
  if (scheme !== undefined) return `${scheme}${question(own, { ...asksFor, title: `Token of ${server}` })}`
  return question(option === 'env' ? name : own, asksFor)
}

/** What a text is for, in words. */
function useOf({ keys: [option = '', name = ''] }: Place): string {
  if (option === 'url') return 'Address'
  if (option === 'headers') return `For the header ${name}`
  if (option === 'env') return `Variable ${name}`
  return `For ${[option, name].filter((word) => word !== '' && !/^\d+$/.test(word)).join('.')}`
}

function titleOf({ server, keys: [option = '', name = ''] }: Place): string {
  if (option === 'url') return `Address of ${server}`
  if (option === 'headers' || option === 'env') return name
  return `${[option, name].filter(Boolean).join('.')} of ${server}`
}

/** A name for a variable of its own. */
function variableOf(...words: readonly string[]): string {
  const name = words.join('_').replace(/\W+/g, '_').toUpperCase()
  return /^\d/.test(name) ? `_${name}` : name
}

/** Files of this machine that programs of these entries are given: an extension does not bring them along. */
export function ownFiles(servers: Readonly<Record<string, unknown>>, isFile: (path: string) => boolean): string[] {
  return Object.values(servers).flatMap((entry) => {
    if (!isObject(entry)) return []
    const { command, args } = entry
    const words = [command, ...(Array.isArray(args) ? (args as unknown[]) : [])]
    return words.filter((word): word is string => typeof word === 'string' && isFile(word))
  })
}
