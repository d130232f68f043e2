/**
 * Makes a person approve calls of tools before they go to the server. The person is asked by the client, with a form that
 * shows the arguments. An approval is for one principal and one call with these params, and is used once.
 */

import type { SealKey } from '../../../base/crypto/seal.js'
import { Fault, isOfSignIn } from '../../../base/fault/fault.js'
import { faults } from '../../../base/fault/faults.js'
import type { Memory } from '../../../base/limits/memory.js'
import { EMPTY, edit, raw } from '../../../base/rpc/splice.js'
import type { Observe } from '../../../mcp/ports/events.js'
import type { KeptOwners } from '../../../mcp/ports/kept-owners.js'
import { OwnedByReplica } from '../../../mcp/ports/replicas.js'
import {
  ANONYMOUS,
  type Answers,
  type ApprovalStep,
  type Call,
  type Final,
  type Handler,
  type Policy,
} from '../../../mcp/protocol/call.js'
import { shownName } from '../../../mcp/protocol/implementation.js'
import { CALL_TOOL } from '../../../mcp/protocol/methods.js'
import { ChosenList } from '../choice/listed.js'
import { refuse, toolOf } from '../refusal.js'
import { isUnambiguous } from '../unambiguous.js'
import { argumentLines } from './argument-lines.js'
import { type AskedRules, type AskedTool, askedOn, askedTools } from './asked-tools.js'
import { type ApprovalPage, decideAtPage } from './by-page.js'
import type { Expirations } from './expirations.js'
import { type Approved, digestOf, type Pass, Passes } from './passes.js'
import { canAsk, type Decided, decisionIn, formOf, named } from './question.js'
import type { Watched } from './watched.js'

export interface ApprovalOptions extends AskedRules {
  server: string
  /** Milliseconds for which a person may allow a tool with any arguments. */
  approveFor?: number | undefined
  /** The page where people decide; undefined if their clients ask them. */
  page?: ApprovalPage | undefined
  /** Milliseconds in which the person has to answer. */
  within(): number
  keys: readonly SealKey[]
  owners: KeptOwners
  memory: Memory
  observe?: Observe | undefined
  /** Watches the questions of all servers. */
  watched: Watched
  /** Is told once of each question that nobody has answered in time. */
  questionExpired: Expirations
}

/** The policy of one server. It has to be behind those that refuse calls, and before the limits of calls. */
export function approval(options: ApprovalOptions): Policy {
  const { server, approveFor, page, within, memory, observe, questionExpired, override = {} } = options
  const asks = askedTools(server, options)
  const list = new ChosenList<AskedTool>({ server, method: 'tools/list', see: askedOn(options), memory })
  const passes = new Passes(options)
  const tell = (what: 'asked' | 'approved' | 'refused' | 'expired') => observe?.({ kind: 'approval', server, what })

  async function calling(call: Call, next: Handler): Promise<Final> {
    const tool = toolOf(call)
    if (tool === undefined) throw new Fault('invalidParams', 'The call has no valid tool name: send params.name once')
    const listed = await found(call, tool, next)
    if (!asks(tool, listed)) return next(call)
    if (!isUnambiguous(call.params, 'arguments'))
      throw new Fault('invalidParams', 'params.arguments must be in lower case and must not be repeated')
    const approved = { principal: call.principal, tool, digest: digestOf(call) }
    const { state } = call.answers ?? {}
    const pass = state === undefined ? undefined : passes.read(state, approved, call)
    if (pass?.of === 'server') return goingOn(call, approved, pass, next)
    if (pass?.of === 'question' && !page) return answered(call, approved, pass, next)
    // No answer to a question that was asked here.
    const fresh = call.answers ? { ...call, answers: undefined } : call
    if (await passes.useKept(approved)) return run(fresh, approved, 'kept', next)
    if (windowFor(call) !== undefined && (await passes.isOpen(approved))) return run(fresh, approved, 'window', next)
    return page ? atPage(page, call, { approved, pass, listed }, next) : ask(fresh, approved, listed)
  }

  /** What the server lists under a name. Undefined if it lists none, or if the list cannot be read now. */
  async function found(call: Call, tool: string, next: Handler): Promise<AskedTool | undefined> {
    try {
      return await list.find(call, tool, next)
    } catch (error) {
      if (!(error instanceof Fault) || call.signal.aborted || isOfSignIn(error)) throw error
      return undefined
    }
  }

  async function ask(call: Call, approved: Approved, listed: AskedTool | undefined): Promise<Final> {
    const { tool } = approved
    if (!canAsk(call, 'form')) {
      call.approval?.('impossible')
      const text = `A person has to approve "${named(call.called ?? tool)}" first, and this client cannot ask for that. Nothing was run. Use a client that supports elicitation, or have the operator set "approveBy": "page" for the server`
      return refuse(call, { reason: 'approval_required', text })
    }
    const inputRequests = formOf(decidedOn(call, tool, listed), windowFor(call))
    const audited = call.audited?.()
    const requestState = await passes.ask(approved, within(), () => questionExpired({ server, audited }))
    tell('asked')
    call.approval?.('asked')
    return { kind: 'input', result: edit(EMPTY, { inputRequests, requestState }) }
  }

  /** What the person decides on. */
  function decidedOn(call: Call, tool: string, listed: AskedTool | undefined): Decided {
    const omitted = new Set(Object.keys(override[tool]?.set ?? {}))
    const secrets = listed?.secrets ?? new Set<string>()
    const lines = argumentLines(raw(call.params, 'arguments') ?? '{}', { secrets, omitted })
    return { server, tool, arguments: lines }
  }

  async function atPage(
    where: ApprovalPage,
    call: Call,
    { approved, pass, listed }: { approved: Approved; pass: Pass | undefined; listed: AskedTool | undefined },
    next: Handler,
  ): Promise<Final> {
    const { tool } = approved
    const window = windowFor(call)
    const decided = await decideAtPage(where, {
      passes,
      call,
      approved,
      pass: pass?.of === 'page' ? pass : undefined,
      question: {
        ...decidedOn(call, tool, listed),
        client: shownName(call.caller.clientInfo),
        window,
        until: Date.now() + within(),
        audited: call.audited?.(),
      },
    })
    // The question was counted when it expired.
    if (decided === 'expired') return notRun(call, decided)
    if (typeof decided === 'string') return refused(call, decided)
    if (!('chosen' in decided)) {
      if (decided.isNew) tell('asked')
      call.approval?.('asked')
      if ('final' in decided) return decided.final
      const text = `A person has to approve "${named(call.called ?? tool)}" first: open ${decided.address}, and call it again after that. Nothing was run`
      return refuse(call, { reason: 'approval_required', text, data: { url: decided.address } })
    }
    // It was counted when the person chose it.
    const { chosen } = decided
    if (chosen === 'refused') return notRun(call, 'refused')
    if (chosen === 'window' && window !== undefined) await passes.open(approved, window)
    return run({ ...call, answers: undefined }, approved, 'page', next)
  }

  async function answered(call: Call, approved: Approved, pass: Pass, next: Handler): Promise<Final> {
    const window = windowFor(call)
    const decision = decisionIn(call.answers?.responses, window)
    const isUnused = await passes.use(pass)
    // Unless it was counted before.
    if (pass.isOver) return isUnused ? refused(call, 'expired') : notRun(call, 'expired')
    // Used before; the call comes again if it has not reached the server.
    if (!isUnused && !(await passes.useKept(approved))) return refused(call, 'used')
    if (decision === 'cancelled' || decision === 'refused') return refused(call, decision)
    if (decision === 'window' && window !== undefined) await passes.open(approved, window)
    if (isUnused) tell('approved')
    return run({ ...call, answers: undefined }, approved, 'form', next, pass)
  }

  /** The client has answered a question that the server has asked since. */
  async function goingOn(call: Call, approved: Approved, pass: Pass, next: Handler): Promise<Final> {
    const isUnused = (await passes.use(pass)) || (await passes.useKept(approved))
    if (pass.isOver || !isUnused) return refused(call, pass.isOver ? 'expired' : 'used')
    const answers: Answers = { responses: call.answers?.responses, state: pass.state }
    return run({ ...call, answers }, approved, 'form', next, pass)
  }

  async function run(call: Call, approved: Approved, how: ApprovalStep, next: Handler, pass?: Pass): Promise<Final> {
    call.approval?.(how)
    call.log.note({ approval: how })
    let last: Final
    try {
      last = await next(call)
    } catch (error) {
      // It has not reached the server: it comes again after a sign-in, or in the replica that owns it.
      const isUnsent = isOfSignIn(error) || error instanceof OwnedByReplica
      if (isUnsent) await passes.release(approved, within(), isSomebody(call) && isOfSignIn(error) ? undefined : pass)
      throw error
    }
    // The server has refused the client, which may come again as one that knows tasks, for example.
    if (last.kind === 'error' && last.error.code === faults.missingCapability.code)
      await passes.release(approved, within(), isSomebody(call) ? undefined : pass)
    // In a session of the server itself, it is for the client.
    if (last.kind !== 'input' || call.link) return last
    const requestState = await passes.issue(approved, raw(last.result, 'requestState'))
    return { ...last, result: edit(last.result, { requestState }) }
  }

  function refused(call: Call, why: keyof typeof REFUSALS): Final {
    tell(REFUSALS[why].reason === 'approval_refused' ? 'refused' : 'expired')
    return notRun(call, why)
  }

  function notRun(call: Call, why: keyof typeof REFUSALS): Final {
    const { reason, says } = REFUSALS[why]
    call.approval?.(why)
    return refuse(call, { reason, text: `"${named(call.called ?? toolOf(call) ?? '')}" was not run: ${says}` })
  }

  /** The time for which the caller may allow a tool. */
  const windowFor = (call: Call) => (isSomebody(call) ? approveFor : undefined)

  return (next) => {
    const remembering = list.policy(next)
    return (call) => (call.method === CALL_TOOL ? calling(call, next) : remembering(call))
  }
}

/** Callers without a credential may be different people. */
function isSomebody({ principal }: Call): boolean {
  return principal !== ANONYMOUS
}

/** Why a call was not run, in words for models. */
const REFUSALS = {
  refused: {
    reason: 'approval_refused',
    says: 'the person has refused it. Do not try again unless the person asks for it',
  },
  cancelled: { reason: 'approval_refused', says: 'the person has not approved it' },
  expired: {
    reason: 'approval_expired',
    says: 'the answer came too late. Call it again, and the person is asked again',
  },
  used: {
    reason: 'approval_expired',
    says: 'this approval was used before, or is not known any more. Call it again, and the person is asked again',
  },
} as const
