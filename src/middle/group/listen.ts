/**
 * Serves a `subscriptions/listen` of a client to a group (MCP 2026-07-28, basic/patterns/subscriptions), with a
 * subscription to each server concerned. It survives the failure of any server.
 */

import { Fault } from '../../base/fault/fault.js'
import { textUnder } from '../../base/rpc/splice.js'
import { within } from '../../base/time/time.js'
import { ENDED } from '../../mcp/listening/keep-open.js'
import { PendingChanges } from '../../mcp/listening/pending-changes.js'
import type { Call, Final, ServerNotification } from '../../mcp/protocol/call.js'
import { withoutEnvelope } from '../../mcp/protocol/meta.js'
import {
  acknowledgement,
  type ChangingList,
  everythingIn,
  filterOf,
  isAbout,
  isNothing,
  type SubscriptionFilter,
  UPDATED,
} from '../../mcp/protocol/subscriptions.js'
import type { Member } from './member.js'
import { MemberStream } from './member-stream.js'
import type { FoundMember } from './targets.js'

export interface GroupListeningOptions {
  call: Call
  /** The active servers. */
  members(): readonly Member[]
  /** Whether a server is not started for the sake of its changes. */
  sleeps(member: Member): boolean
  /** The lists that the group offers, as far as known. */
  offered(lists: readonly ChangingList[]): readonly ChangingList[]
  /** The server of a URI or a task. Without one, rejects with a Fault or is undefined. */
  uri(uri: string): FoundMember | Promise<FoundMember>
  task(taskId: string): FoundMember | undefined
  /** Translates a server's notification into the names of the group. */
  shown(member: Member, notification: ServerNotification): ServerNotification
}

/** A resource or task that a client subscribes to: the client's name for it, and its server. */
interface Subject {
  given: string
  server: string
  id: string
  /** The client sent the URI without a prefix. */
  isBare: boolean
}

/** Most resources and tasks of one subscription. */
const MAX_SUBJECTS = 1_024
/** Milliseconds that a server has to accept a subscription to a resource or task. */
const AGREE_WITHIN = 2_000
/** Milliseconds within which equal changes are merged. */
const GATHER = 100

export class GroupListening {
  readonly #options: GroupListeningOptions
  readonly #streams = new Map<Member, MemberStream>()
  #lists: readonly ChangingList[] = []
  #uris: readonly Subject[] = []
  #tasks: readonly Subject[] = []
  readonly #pending: PendingChanges
  #over = false

  constructor(options: GroupListeningOptions) {
    this.#options = options
    this.#pending = new PendingChanges({ call: options.call, gather: GATHER })
  }

  /** The principal that listens. */
  get principal(): string {
    return this.#options.call.principal
  }

  /** Acknowledges the subscription, and sends changes until the call is cancelled. Rejects with a Fault if it is invalid. */
  async run(): Promise<Final> {
    const { call } = this.#options
    const wanted = filterOf(call, MAX_SUBJECTS)
    try {
      const lists = this.#options.offered(wanted.lists)
      const located = await Promise.all(wanted.uris.map((uri) => this.#locate(uri)))
      // Not before: a change meanwhile would subscribe to the lists alone.
      this.#lists = lists
      this.#uris = located.flatMap((found) => found ?? [])
      this.#tasks = wanted.tasks.flatMap((taskId) => {
        const found = this.#options.task(taskId)
        return found ? [{ given: taskId, server: found.member.server, id: found.id, isBare: false }] : []
      })
      this.adjust()
      const honoured = { lists: this.#lists, uris: await this.#agreed('uris'), tasks: await this.#agreed('tasks') }
      call.signal.throwIfAborted()
      await call.notify(acknowledgement(honoured))
      if (isNothing(honoured)) return ENDED
      await this.#pending.tellAll()
      throw call.signal.reason
    } finally {
      this.#stop()
    }
  }

  /** To be called when the servers of the group, their names, or what is known of their lists have changed. */
  changed(): void {
    this.adjust()
    this.#tellLists()
  }

  /** To be called when a server did not answer: its subscription may have ended without notice. */
  expect(member: Member): void {
    this.#streams.get(member)?.expect()
  }

  /**
   * Subscribes to new servers, and to those that do not sleep any more. Ends the subscriptions to removed ones, and to the
   * lists of those that sleep again: an open one would keep their programs. Returns whether others may sleep later.
   */
  adjust(): boolean {
    if (this.#over) return false
    const { members, sleeps } = this.#options
    const wanted = new Map(members().map((member) => [member, this.#filterFor(member)]))
    for (const [member, filter] of wanted)
      if (isNothing(filter) || (isOfLists(filter) && sleeps(member))) wanted.delete(member)
    for (const [member, stream] of this.#streams) {
      if (wanted.has(member)) continue
      this.#streams.delete(member)
      stream.stop()
    }
    for (const [member, filter] of wanted) {
      if (this.#streams.has(member)) continue
      const stream = new MemberStream({
        member,
        call: this.#options.call,
        filter,
        heard: (told) => this.#heard(member, told),
        missed: () => this.#missed(member, filter),
      })
      this.#streams.set(member, stream)
    }
    return [...wanted].some(([member, filter]) => member.sleeps && isOfLists(filter))
  }

  #filterFor({ server }: Member): SubscriptionFilter {
    const of = (subjects: readonly Subject[]) => subjects.flatMap((one) => (one.server === server ? one.id : []))
    return { lists: this.#lists, uris: of(this.#uris), tasks: of(this.#tasks) }
  }

  /** The requested resources or tasks that servers accepted, or may accept because they have not answered yet. */
  async #agreed(what: 'uris' | 'tasks'): Promise<readonly string[]> {
    const subjects = what === 'uris' ? this.#uris : this.#tasks
    const concerned = new Set(subjects.map(({ server }) => server))
    const refused = new Set<Subject>()
    await Promise.all(
      [...this.#streams].map(async ([{ server }, stream]) => {
        if (!concerned.has(server)) return
        const filter = await within(stream.agreed, AGREE_WITHIN, undefined, this.#options.call.signal)
        if (!filter) return
        for (const one of subjects) if (one.server === server && !filter[what].includes(one.id)) refused.add(one)
      }),
    )
    return subjects.flatMap((one) => (refused.has(one) ? [] : one.given))
  }

  async #locate(uri: string): Promise<Subject | undefined> {
    try {
      const { member, id, bare } = await this.#options.uri(uri)
      return { given: uri, server: member.server, id, isBare: bare !== undefined }
    } catch (error) {
      // No server has it, or one that has not answered yet.
      if (error instanceof Fault && (error.fault === 'invalidParams' || error.fault === 'upstreamBusy'))
        return undefined
      throw error
    }
  }

  #heard(member: Member, notification: ServerNotification): void {
    const { method, params } = notification
    const bare = { ...notification, params: withoutEnvelope(params) }
    const isBare = method === UPDATED && this.#isBare(member, textUnder(params, 'uri'))
    this.#pending.add(isBare ? bare : this.#options.shown(member, bare))
  }

  /** Whether the client subscribed to this resource, or to a parent of it, without a prefix. */
  #isBare({ server }: Member, uri: string): boolean {
    const about = this.#uris.filter((one) => one.server === server && isAbout(uri, one.id))
    return about.length > 0 && about.every((one) => one.isBare)
  }

  /** Reports everything of a server as changed: it was added or removed, or changes may have been missed. */
  #missed(member: Member, { uris }: SubscriptionFilter): void {
    this.#tellLists()
    for (const told of everythingIn({ lists: [], uris })) this.#heard(member, told)
  }

  #tellLists(): void {
    for (const told of everythingIn({ lists: this.#lists, uris: [] })) this.#pending.add(told)
  }

  #stop(): void {
    this.#over = true
    for (const stream of this.#streams.values()) stream.stop()
    this.#streams.clear()
  }
}

/** Whether nothing but lists is subscribed to. */
function isOfLists({ uris, tasks }: SubscriptionFilter): boolean {
  return uris.length === 0 && tasks.length === 0
}
