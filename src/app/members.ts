/** Makes the members of a group of the mounts of its servers. */
import type { Policy, Sender } from '../mcp/protocol/call.js'
import type { Upstream } from '../mcp/protocol/upstream.js'
import type { Member } from '../middle/group/member.js'
import { compose } from '../middle/policy/compose.js'
import { chosenFrom } from '../middle/policy/forwarding.js'
import type { Mount } from './mount.js'

/** Most characters of a title made from the names of servers. */
const MAX_TITLE = 60

/** A server of a group, as the group uses it. */
export function memberOf(
  mount: Mount,
  { prefix, group, sleeps }: { prefix: string; group: string | undefined; sleeps: boolean },
  policies: readonly Policy[],
): Member {
  const { handle: served, notify, withholds, ...rest } = mount.upstream
  const handle = compose(served, ...policies)
  // A server gets no headers for others.
  const chosen = <T extends Sender>(one: T): T =>
    one.credential === undefined ? one : { ...one, credential: chosenFrom(one.credential, mount.forwarded) }
  const upstream: Upstream = {
    ...rest,
    handle: (call) => handle(chosen(group === undefined ? call : { ...call, group })),
    notify: (notice) => notify(chosen(notice)),
    ...(withholds && { withholds: (call) => withholds(chosen(call)) }),
  }
  const { lists } = mount.plan
  return {
    server: mount.name,
    ...{ prefix, upstream, lists, sleeps },
    sleepsAfter: () => mount.idleLimit,
    takesPart: () => mount.isTrusted,
  }
}

/** The title of a group without a configured name. */
export function titleOf(members: readonly Member[]): string {
  const names = members.map(({ server }) => server)
  let shown = names.length
  const title = () =>
    names.slice(0, shown).join(', ') + (shown < names.length ? ` and ${names.length - shown} more` : '')
  while (shown > 1 && title().length > MAX_TITLE) shown--
  return title()
}
