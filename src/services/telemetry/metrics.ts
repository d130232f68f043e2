/** Counts and times what happens in the bridge, for Prometheus. docs/metrics.md explains each metric. */
import {
  type Aggregator,
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge as Level,
  type Metric,
  Registry,
} from 'prom-client'
import { faults } from '../../base/fault/faults.js'
import type { CallEvent, Conditions, Gauge, Observe } from '../../mcp/ports/events.js'
import { CALL_TOOL, methods } from '../../mcp/protocol/methods.js'
import { type Tally, Timer } from './timer.js'

/** Most values of a label. Further ones are counted as `other`. */
const MAX_LABEL_VALUES = 200
const OTHER = 'other'
/** Upper bounds of the histograms' buckets, in seconds. */
const OF_CALLS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
const OF_THE_BRIDGE = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1]
/** Gauges of prom-client that are named like counters, and gauges that repeat others by kind. */
const LEFT_OUT = [
  'nodejs_active_handles',
  'nodejs_active_handles_total',
  'nodejs_active_requests',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

/** Values that are counted from 0 on: Prometheus does not notice an increase in a series that starts at 1. */
const EVENTS = {
  question: ['parked', 'answered', 'expired', 'refused', 'lost'],
  session: ['opened', 'ended', 'lost'],
  child: ['started', 'restarted', 'ended'],
  approval: ['asked', 'approved', 'refused', 'expired'],
  cut: ['cut', 'whole', 'pushed_out'],
} as const

/** The counters, by name without `mcp_bridge_` and `_total`. */
const COUNTERS = {
  calls: {
    help: 'Calls that have ended.',
    labels: 'server group client_era server_era method tool outcome blame',
  },
  verdicts: { help: 'Detected eras of servers, by the kind of evidence.', labels: 'server era why' },
  questions: { help: 'Rounds of questions to clients, by outcome.', labels: 'server group event' },
  downlevelled: {
    help: 'Changes to results and notifications for older clients, by feature.',
    labels: 'server group feature',
  },
  approvals: { help: 'Approvals of calls that people were asked for, by outcome.', labels: 'server event' },
  cut_results: { help: 'Results of tools that were too long, by what became of them.', labels: 'server event' },
  cut_bytes: { help: 'Bytes of cut results that were kept.', labels: 'server' },
  cache_events: { help: 'Hits, misses, insertions and drops of cached results.', labels: 'server event' },
  session_events: { help: 'Sessions of clients and with servers.', labels: 'server group side event' },
  sse_sessions: {
    help: 'Opened sessions over HTTP+SSE, which MCP may remove.',
    labels: 'server group side client',
  },
  child_events: { help: 'Processes of servers on stdio.', labels: 'server event' },
  forwarded: { help: 'Requests that were forwarded to another replica.', labels: 'server group outcome' },
  group_member_events: {
    help: 'Servers of groups that do not answer, or answer again.',
    labels: 'group server event',
  },
  discovery_failures: { help: 'Failed discovery cycles.', labels: 'phase reason' },
  refusals: { help: 'Requests that were refused before they became calls.', labels: 'server group reason' },
} as const

/** The reasons of most refusals. */
const REFUSALS = Object.entries(faults).flatMap(([name, { blame }]) => (blame === 'caller' ? [name] : []))

/** The counters for one combination of labels. Kept, because looking them up costs more than counting. */
interface Series {
  /** A counted event. */
  first: CallEvent
  labels: Record<string, string>
  calls: number
  /** Set for known methods whose calls end by themselves. */
  times: { total: Tally; upstream: Tally; bridge: Tally } | undefined
}

/** A metric, as the registry tells it. What is no number is null in JSON. */
export interface MetricData {
  aggregator: string
  values: readonly { value: unknown }[]
}

/** Counts and times all events. */
export class Metrics {
  readonly #registry = new Registry()
  readonly #series = new Map<string, Series>()
  /** The last one of each known method: most calls equal the previous one. */
  readonly #last = new Map<string, Series>()
  readonly #servers = atMost(MAX_LABEL_VALUES, (server) => this.#begin(server))
  readonly #tools: number
  /** By server. */
  readonly #toolNames = new Map<string, (name: string) => string>()
  readonly #groups = atMost(MAX_LABEL_VALUES, (group) => this.#beginGroup(group))
  readonly #reasons = atMost(MAX_LABEL_VALUES)
  /** Names of clients over HTTP+SSE. */
  readonly #clients = atMost(MAX_LABEL_VALUES)
  readonly #features = atMost(MAX_LABEL_VALUES)
  readonly #counters = {} as Record<keyof typeof COUNTERS, Counter>
  readonly #times: { total: Timer; upstream: Timer; bridge: Timer }
  readonly #used: Level
  readonly #limit: Level
  readonly #reload: { successful: Level; at: Level }
  readonly #redisUp: Level
  readonly #redisMayEvict: Level
  readonly #issuerUp: Level
  readonly #expiry: Level
  readonly #address: { up: Level; calls: Level }

  /** `tools`: most tools per server with their own value in the label `tool`; 0 for no such label. */
  constructor({ version, tools = 0 }: { version: string; tools?: number }) {
    this.#tools = tools
    const registers = [this.#registry]
    const about = (name: string, help: string, labels = '') => {
      return { name: `mcp_bridge_${name}`, help, labelNames: labels.split(' ').filter(Boolean), registers }
    }
    /** `together`: what several workers have of it, in one value. */
    const level = (name: string, help: string, labels?: string, together: Aggregator = 'sum') =>
      new Level({ ...about(name, help, labels), aggregator: together })
    const timer = (name: string, help: string, bounds: readonly number[]) => {
      const made = new Timer(`mcp_bridge_${name}_seconds`, help, bounds)
      this.#registry.registerMetric(made as unknown as Metric)
      return made
    }

    for (const [name, { help, labels }] of Object.entries(COUNTERS))
      this.#counters[name as keyof typeof COUNTERS] = new Counter(about(`${name}_total`, help, labels))
    for (const reason of REFUSALS) this.#counters.refusals.inc({ reason }, 0)
    this.#times = {
      total: timer('call_duration', 'From the arrival of a call to its answer.', OF_CALLS),
      upstream: timer('call_upstream', 'The part of it that was spent waiting for the server.', OF_CALLS),
      bridge: timer('call_bridge', 'The rest of it.', OF_THE_BRIDGE),
    }
    this.#used = level('bound_used', 'How much of a bound is used.', 'bound server group')
    this.#limit = level('bound_limit', 'The value of a bound.', 'bound server group')
    this.#reload = {
      successful: level(
        'config_last_reload_successful',
        'Whether the last change of the configuration is in use.',
        '',
        'min',
      ),
      at: level('config_last_reload_success_timestamp_seconds', 'When the configuration in use was read.', '', 'min'),
    }
    this.reloaded(true)
    this.#redisUp = level('redis_up', 'Whether Redis can be used.', '', 'min')
    this.#redisUp.remove()
    this.#redisMayEvict = level('redis_may_evict', 'Whether Redis may evict records that replicas need.', '', 'max')
    this.#redisMayEvict.remove()
    this.#issuerUp = level('issuer_up', 'Whether the keys of an identity provider can be had.', 'issuer', 'min')
    this.#expiry = level(
      'certificate_expiry_timestamp_seconds',
      'When a certificate of the bridge expires.',
      'use server',
      'min',
    )
    this.#address = {
      up: level('address_up', 'Whether an address of a server with several is used.', 'server address', 'max'),
      calls: level('address_calls', 'Calls that an address of a server with several is answering.', 'server address'),
    }
    level('build_info', 'The version of the bridge.', 'version', 'first').set({ version }, 1)
    collectDefaultMetrics({ register: this.#registry })
    for (const name of LEFT_OUT) this.#registry.removeSingleMetric(name)
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /** Counts a reload, by whether the new configuration is in use. */
  reloaded(isSuccessful: boolean): void {
    this.#reload.successful.set(Number(isSuccessful))
    if (isSuccessful) this.#reload.at.setToCurrentTime()
  }

  /** All metrics, with the current use of bounds and conditions, in the text format of Prometheus. */
  text(gauges: Iterable<Gauge>, conditions: Conditions = {}): Promise<string> {
    this.#collect(gauges, conditions)
    return this.#registry.metrics()
  }

  /** The same as data, for `together`. */
  async data(gauges: Iterable<Gauge>, conditions: Conditions = {}): Promise<MetricData[]> {
    this.#collect(gauges, conditions)
    return (await this.#registry.getMetricsAsJSON()) as unknown as MetricData[]
  }

  /** The data of several workers as one text. */
  together(all: readonly (readonly MetricData[])[]): Promise<string> {
    const usable = all.map((metrics) =>
      metrics.map(({ aggregator, ...metric }) => ({
        ...metric,
        // The whole is as old as its oldest worker.
        aggregator: aggregator === 'omit' ? 'min' : aggregator,
        values: metric.values.filter(({ value }) => typeof value === 'number'),
      })),
    )
    return AggregatorRegistry.aggregate(usable).metrics()
  }

  #collect(
    gauges: Iterable<Gauge>,
    { redisUp, redisMayEvict, certificates = [], issuers = [], addresses = [] }: Conditions,
  ): void {
    this.#counters.calls.reset()
    for (const { labels, calls } of this.#series.values()) this.#counters.calls.inc(labels, calls)
    this.#used.reset()
    this.#limit.reset()
    for (const { bound, used, limit, ...whose } of gauges) {
      const labels = { bound, ...this.#whose(whose) }
      this.#used.set(labels, used)
      this.#limit.set(labels, limit)
    }
    if (redisUp !== undefined) this.#redisUp.set(Number(redisUp))
    if (redisMayEvict !== undefined) this.#redisMayEvict.set(Number(redisMayEvict))
    this.#issuerUp.reset()
    for (const { issuer, state } of issuers)
      if (state !== 'unknown') this.#issuerUp.set({ issuer }, Number(state === 'up'))
    this.#address.up.reset()
    this.#address.calls.reset()
    for (const { server, address, isUp, calls } of addresses) {
      const labels = { server: this.#servers(server), address }
      this.#address.up.set(labels, Number(isUp))
      this.#address.calls.set(labels, calls)
    }
    this.#expiry.reset()
    for (const { use, server = '', expiresAt } of certificates)
      this.#expiry.set({ use, server: server && this.#servers(server) }, expiresAt / 1000)
  }

  readonly observe: Observe = (event) => {
    if (event.kind === 'call') return this.countCall(event)
    if (event.kind === 'discovery')
      return this.#counters.discovery_failures.inc({ phase: event.phase, reason: event.reason })
    const whose = this.#whose(event)
    const { server } = whose
    switch (event.kind) {
      case 'refusal':
        return this.#counters.refusals.inc({ ...(server === '' && !whose.group ? {} : whose), reason: event.reason })
      case 'verdict':
        return this.#counters.verdicts.inc({ server, era: event.era, why: this.#reasons(event.why) })
      case 'question':
        return this.#counters.questions.inc({ ...whose, event: event.what })
      case 'downlevelled':
        return this.#counters.downlevelled.inc({ ...whose, feature: this.#features(event.what) })
      case 'cache':
        return this.#counters.cache_events.inc({ server, event: event.what })
      case 'approval':
        return this.#counters.approvals.inc({ server, event: event.what })
      case 'cut':
        this.#counters.cut_bytes.inc({ server }, event.bytes ?? 0)
        return this.#counters.cut_results.inc({ server, event: event.what })
      case 'session':
        if (event.overSse !== undefined)
          this.#counters.sse_sessions.inc({ ...whose, side: event.side, client: this.#clients(event.overSse) })
        return this.#counters.session_events.inc({ ...whose, side: event.side, event: event.what })
      case 'child':
        return this.#counters.child_events.inc({ server, event: event.what })
      case 'forwarded':
        return this.#counters.forwarded.inc({ ...whose, outcome: event.what })
      case 'member':
        return this.#counters.group_member_events.inc({ ...whose, event: event.what })
    }
  }

  /** The labels of an event of a server or a group. An event of a group has no server, unless it concerns one. */
  #whose({ server = '', group }: { server?: string | undefined; group?: string | undefined }): {
    server: string
    group?: string
  } {
    const named = server && this.#servers(server)
    return group === undefined ? { server: named } : { server: named, group: this.#groups(group) }
  }

  #beginGroup(group: string): void {
    for (const event of EVENTS.question) this.#counters.questions.inc({ server: '', group, event }, 0)
    for (const event of EVENTS.session)
      this.#counters.session_events.inc({ server: '', group, side: 'client', event }, 0)
  }

  #begin(server: string): void {
    for (const event of EVENTS.question) this.#counters.questions.inc({ server, event }, 0)
    for (const event of EVENTS.approval) this.#counters.approvals.inc({ server, event }, 0)
    for (const event of EVENTS.cut) this.#counters.cut_results.inc({ server, event }, 0)
    this.#counters.cut_bytes.inc({ server }, 0)
    for (const event of EVENTS.child) this.#counters.child_events.inc({ server, event }, 0)
    for (const side of ['client', 'server'])
      for (const event of EVENTS.session) this.#counters.session_events.inc({ server, side, event }, 0)
  }

  readonly countCall = (event: CallEvent): void => {
    const last = this.#last.get(event.method)
    const series = last && isAlike(last.first, event) ? last : this.#seriesOf(event)
    series.calls++
    const { ms, upstreamMs } = event
    series.times?.total.observe(ms / 1000)
    if (upstreamMs === undefined) return
    series.times?.upstream.observe(upstreamMs / 1000)
    series.times?.bridge.observe(Math.max(0, ms - upstreamMs) / 1000)
  }

  /** The value of the label `tool`; undefined for none. */
  #toolOf({ method, tool }: CallEvent, server: string): string | undefined {
    if (this.#tools === 0 || method !== CALL_TOOL) return undefined
    if (tool === undefined) return OTHER
    let shown = this.#toolNames.get(server)
    if (!shown) {
      shown = atMost(this.#tools)
      this.#toolNames.set(server, shown)
    }
    return shown(tool)
  }

  #seriesOf(event: CallEvent): Series {
    const { clientEra, outcome } = event
    const whose = this.#whose(event)
    const serverEra = event.serverEra ?? 'unknown'
    const blame = event.blame ?? 'nobody'
    const traits = Object.hasOwn(methods, event.method) ? methods[event.method] : undefined
    const method = traits ? event.method : OTHER
    const tool = this.#toolOf(event, whose.server)
    const key = `${Object.values(whose).join('/')} ${clientEra} ${serverEra} ${method} ${outcome} ${blame} ${tool}`
    let series = this.#series.get(key)
    if (!series) {
      const eras = { client_era: clientEra, server_era: serverEra }
      const { total, upstream, bridge } = this.#times
      const named = tool === undefined ? {} : { tool }
      series = {
        first: event,
        labels: { ...whose, ...eras, method, ...named, outcome, blame },
        calls: 0,
        times:
          traits && !traits.endless
            ? {
                total: total.tally({ ...whose, method, ...named }),
                upstream: upstream.tally({ ...whose, method }),
                bridge: bridge.tally({ ...eras, method }),
              }
            : undefined,
      }
      this.#series.set(key, series)
    }
    if (traits) this.#last.set(method, series)
    return series
  }
}

/** Whether two events have the same labels, if their methods are equal and known. */
function isAlike(one: CallEvent, other: CallEvent): boolean {
  return (
    one.outcome === other.outcome &&
    one.server === other.server &&
    one.group === other.group &&
    one.tool === other.tool &&
    one.clientEra === other.clientEra &&
    one.serverEra === other.serverEra &&
    one.blame === other.blame
  )
}

/** Passes the first `max` values of a label; replaces others by `other`. */
function atMost(max: number, first = (_value: string) => {}): (value: string) => string {
  const known = new Set<string>()
  return (value) => {
    if (known.has(value)) return value
    if (known.size >= max) return OTHER
    known.add(value)
    first(value)
    return value
  }
}
