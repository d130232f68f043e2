/**
 * Decides which resources of a server clients may read, by patterns of URIs. Servers read one URI in many ways: they
 * decode escapes, resolve `..`, and ignore case, hosts, queries or fragments. So a pattern allows a URI only if it does
 * so in each of these readings, and denies it if it does so in one of them.
 */

import { MAX_ADDRESS } from '../../../base/limits/constants.js'
import { consistsOf } from '../../../base/texts/fixed-parts.js'
import { parseUrl } from '../../../base/texts/parse-url.js'
import { folded } from '../unambiguous.js'
import type { Rules } from './names.js'

/** Returns a URI, or a pattern of URIs, as some program reads it. */
type Reading = (uri: string) => string

/** Most rounds of decoding the escapes of a URI. */
const MAX_DECODED = 4
const SCHEME = /^[a-z][a-z\d+.-]*:/i
/** A single letter is a Windows drive. Servers that strip `file://` read a text without a scheme as a path. */
const ABSOLUTE = /^[a-z][a-z\d+.-]+:/i
/** Characters that end a URI for some programs, or that some leave out. U+FFFD stands for escapes that are not UTF-8. */
const UNREADABLE = /[\p{Cc}\p{Cf}\p{Surrogate}\ufffd]/u

/**
 * The parts of a URI that programs use: all of it; the text before its fragment or query, which an escape may begin, too;
 * or its segments without their parameters, which begin with a semicolon.
 */
const CUTS: readonly Reading[] = [
  (uri) => uri,
  (uri) => uri.replace(/#.*$/s, ''),
  (uri) => uri.replace(/[?#].*$/s, ''),
  (uri) => decoded(uri).replace(/#.*$/s, ''),
  (uri) => decoded(uri).replace(/[?#].*$/s, ''),
  (uri) =>
    decoded(uri)
      .replace(/[?#].*$/s, '')
      .replace(/;[^\\/]*/g, ''),
]
/** The authority: many servers ignore the host of a file:// URI. Web parsers drop users. */
const HOSTS: readonly Reading[] = [
  (uri) => uri,
  (uri) => uri.replace(/^(file:)[\\/]{2}[^\\/]*/i, '$1//'),
  (uri) => {
    const url = parseUrl(uri)
    if (!url) return uri
    if (url.host !== '') Object.assign(url, { username: '', password: '' })
    return url.href
  },
]

/** Returns a function that tells whether clients see a URI, or a template of URIs, and may read it. */
export function addresses({ allow, deny }: Rules): (uri: string) => boolean {
  const allowed = allow?.map(patternOf)
  const denied = deny.map(patternOf)
  return (uri) => {
    if (uri.length > MAX_ADDRESS) return false
    const text = decoded(uri)
    if (!ABSOLUTE.test(text.trim()) || UNREADABLE.test(text) || decoded(uri, MAX_DECODED + 1) !== text) return false
    const read = readingsOf(uri)
    if (
      denied.some(
        ({ given, readings }) => consistsOf(given, uri) || readings.some((one, at) => consistsOf(one, read[at])),
      )
    )
      return false
    if (!allowed) return true
    return allowed.some(
      ({ given, readings }) => consistsOf(given, uri) && readings.every((one, at) => consistsOf(one, read[at])),
    )
  }
}

/** A pattern, as given and in all readings, each split at its `*`, which match any characters. */
function patternOf(pattern: string): { given: readonly string[]; readings: readonly (readonly string[])[] } {
  return { given: pattern.split('*'), readings: readingsOf(pattern).map((reading) => reading.split('*')) }
}

/** A URI or a pattern in all readings, in the form of `plain`. */
function readingsOf(uri: string): readonly string[] {
  // For most URIs, all readings are equal.
  const known = new Map<string, readonly string[]>()
  return HOSTS.flatMap((host) => {
    const whole = host(uri)
    const found = known.get(whole) ?? cutsOf(whole)
    known.set(whole, found)
    return found
  })
}

function cutsOf(whole: string): readonly string[] {
  if (/[?#%;]/.test(whole)) return CUTS.map((cut) => plain(cut(whole)))
  const only = plain(whole)
  return CUTS.map(() => only)
}

/**
 * A canonical form, without parts that programs read in different ways: escapes are decoded; slashes are single, and one is
 * at the end; `.`, `..`, and dots and spaces that Windows ignores at the end of a name are resolved; letters are lower case.
 */
function plain(uri: string): string {
  const text = decoded(uri).normalize('NFKC').trim()
  const scheme = SCHEME.exec(text)?.[0] ?? ''
  const segments: string[] = []
  for (const segment of text.slice(scheme.length).split(/[\\/]/)) {
    if (segment === '..') segments.pop()
    else if (segment !== '.' && segment !== '') segments.push(segment.replace(/(?<![. ])[. ]+$/, '') || segment)
  }
  const path = folded([...(scheme === '' ? [] : [scheme]), ...segments].join('/'))
  return path.endsWith('*') ? path : `${path}/`
}

/** Decodes escapes, including those that appear by decoding. */
function decoded(uri: string, times = MAX_DECODED): string {
  let text = uri
  for (let time = 0; time < times && text.includes('%'); time++)
    text = text.replace(/(?:%[\da-f]{2})+/gi, (escapes) =>
      Buffer.from(escapes.replaceAll('%', ''), 'hex').toString('utf8'),
    )
  return text
}
