/** Options of the entry of a legacy server that choose how messages of legacy clients reach it. */

/** The bridge answers the client, and has sessions of its own with the server: hidden resources must not be updated. */
export const TRANSLATED = { resources: { deny: ['none:*'] } }

/** By what a lane is. */
export const LANES: Readonly<Record<string, object>> = {
  'direct sessions': {},
  'direct sessions behind a policy': { tools: { deny: ['no'] } },
  'sessions of the bridge': TRANSLATED,
}
