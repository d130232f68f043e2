/**
 * A POST of JSON as a command of PowerShell. Not with curl: Windows PowerShell 5.1 has an alias of this name, and drops
 * double quotes in arguments of programs.
 */
import { unicodeEscape } from './printable.js'
import { inQuotes } from './shell.js'

/** The request. Address and headers are expressions of PowerShell: literals, or with variables. */
export interface PowershellPost {
  url: string
  /** Without the content type. */
  headers: Readonly<Record<string, string>>
  body: string
}

/** The command, in ASCII: version 5.1 uses another encoding for other characters. It prints the body of the answer. */
export function powershellOf({ url, headers, body }: PowershellPost): string {
  const lines = Object.entries(headers).map(([name, value]) => `  '${name}' = ${value}\n`)
  const table = lines.length === 0 ? '' : ` -Headers @{\n${lines.join('')}}`
  const sent = ` -ContentType 'application/json'${table} -Body ${literal(asciiOf(body))}`
  return `(Invoke-WebRequest -UseBasicParsing -Method Post -Uri ${url}${sent}).Content`
}

/** A text as an expression. */
export function literal(text: string): string {
  return inQuotes(text, 'powershell')
}

/** The same JSON in ASCII. */
function asciiOf(json: string): string {
  return json.replaceAll(/[^\0-~]/g, unicodeEscape)
}
