/** Kinds of values that several options take. */
import * as z from 'zod'
import { addressHint } from '../address-hint.js'
import { NEVER_ASKED, NO_ENCODING } from '../served-path.js'

/** A duration. The texts of the options say that it is in milliseconds. */
export const milliseconds = z.number().int().positive()

const UNITS = { s: 1_000, m: 60_000, h: 3_600_000 } as const

/** A time such as 10m, in milliseconds. */
export const shortTime = z
  .string()
  .regex(/^[1-9]\d{0,3}[smh]$/, 'has to be like 30s, 1m or 24h')
  .transform((one) => Number(one.slice(0, -1)) * UNITS[one.at(-1) as keyof typeof UNITS])

/** A bound: a whole number above zero. */
export const count = z.number().int().positive()

const SIZES: Readonly<Record<string, number>> = { KiB: 1024, MiB: 1024 * 1024 }

/** A size: bytes, or a text such as "64 KiB". */
export const size = (least: number) =>
  z.union([
    z.number().int().min(least),
    z
      .string()
      .regex(/^[1-9]\d{0,5} [KM]iB$/, 'has to be bytes, or a text such as "64 KiB" or "1 MiB"')
      .transform((text) => {
        const [number, unit = ''] = text.split(' ')
        return Number(number) * (SIZES[unit] as number)
      }),
  ])

/** A name that can stand in a path. */
export const entryName = z.string().regex(/^[\w.-]{1,64}$/, 'has to be made of letters, digits, ".", "_" and "-"')

/** A scope as OAuth has them: visible ASCII characters without spaces. */
export const scope = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,128}$/, 'has to be visible ASCII without spaces')

/** A web address. `form` ends the message about a text that looks like none. */
export const webAddress = (example: 'http:// or https://' | 'https://', form = '') =>
  z
    .url({ protocol: /^https?$/, error: ({ input }) => notAnAddress(example, input, form), abort: true })
    // Parsers of addresses add and drop slashes: what they make of "http:///x" is seldom what was meant.
    .refine((given) => /^https?:\/\/[^/\\]/i.test(given), { error: ({ input }) => notAnAddress(example, input, form) })

function notAnAddress(example: string, input: unknown, form: string): string {
  return `has to be an ${example} address${addressHint(input) || (/:\/\//.test(String(input)) ? '' : form)}`
}

/** The name of a header, in lower case. */
export const headerName = z
  .string()
  .regex(/^[!#$%&'*+.^`|~\w-]+$/, 'has to be the name of a header')
  .transform((name) => name.toLowerCase())

/** A non-empty text. */
export const text = z.string().min(1)

/** Hosts, addresses and networks that the guard against private networks lets through. */
export const reachable = z.array(text).default([])

const SERVED_PATH = 'has to be a path like /tools/mcp, which does not end in a slash'

/** Why a path cannot be served; undefined if it can. */
export function problemWithPath(path: string): string | undefined {
  return servedPath.safeParse(path).error?.issues[0]?.message
}

/** A path that the bridge serves. */
export const servedPath = z
  .string()
  .regex(/^(?:\/[\w.~%-]+)+$/, SERVED_PATH)
  .refine((path) => !NEVER_ASKED.test(path), NO_ENCODING)

/** A glob of names, or a pattern of URIs. */
export const namePattern = z.string().min(1).max(256, 'is too long: a pattern has at most 256 characters')

/** What becomes of tools for which a caller lacks scopes. */
export const unscoped = z
  .enum(['show', 'hide'])
  .optional()
  .describe(
    'Whether callers who could get further scopes from their identity provider see the tools that they lack scopes for. With "hide", such tools are unknown to them.',
  )
