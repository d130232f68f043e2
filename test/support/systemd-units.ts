/** The units, the configuration and the commands of docs/systemd.md. */
import { readFileSync } from 'node:fs'
import { blocksOf } from './blocks.js'

const page = readFileSync(new URL('../../docs/systemd.md', import.meta.url), 'utf8')

/** The service, and the socket for it. */
export const [unit = '', socketUnit = ''] = blocksOf(page, 'ini')
export const [config = ''] = blocksOf(page, 'json')
/** The lines of commands. */
export const commands = blocksOf(page, 'sh').flatMap((text) => text.trim().split('\n'))
/** What the unit says of a key, as often as it says it. */
export const values = (key: string) =>
  [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value)
