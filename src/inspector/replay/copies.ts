/** The forms in which a call can be copied: commands that repeat it, code for the SDKs, and a file for `mcp-bridge replay`. */

import type { CopyFormName } from '../../config/copy-forms.js'
import { curlOf, powershellRequestOf, type RequestCommand, requiresToken } from '../curl.js'
import type { CallView } from '../views.js'
import { USUALLY_IGNORED } from './from-messages.js'
import { recordingOfView } from './from-view.js'
import { hiddenIn, writeRecording } from './recording.js'
import { type SdkVersion, sdkCodeOf } from './sdk-code.js'

/** The members of a call that are read. */
type CopiedCall = Pick<CallView, 'client' | 'events' | 'principal' | 'server' | 'session' | 'status'>

/** A form. */
export interface CopyForm {
  /** Its name. */
  label: string
  /** The copied text, in words. */
  what: string
  /** The text, and the variables that it needs; undefined if the call cannot be copied in this form. */
  of(call: CopiedCall): RequestCommand | undefined
}

export const COPY_FORMS: Readonly<Record<CopyFormName, CopyForm>> = {
  curl: { label: 'curl (sh)', what: 'the command for sh', of: curlOf },
  powershell: { label: 'PowerShell', what: 'the command for PowerShell', of: powershellRequestOf },
  'sdk-v1': { label: 'SDK v1', what: 'the code for SDK v1', of: (call) => codeOf(call, 'v1') },
  'sdk-v2': { label: 'SDK v2', what: 'the code for SDK v2', of: (call) => codeOf(call, 'v2') },
  recording: { label: 'recording', what: 'the file for mcp-bridge replay', of: fileOf },
}

function codeOf(view: CopiedCall, sdk: SdkVersion): RequestCommand | undefined {
  const call = recordingOfView(view)
  if (typeof call === 'string' || hiddenIn({ params: call.params, answers: call.answers }).length > 0) return undefined
  const transport = view.client?.transport === 'stdio' ? 'stdio' : 'http'
  const needsToken = transport === 'http' && requiresToken(view.principal)
  const command = sdkCodeOf(call, { sdk, transport, needsToken })
  const variables = transport === 'stdio' ? [] : ['MCP_BRIDGE_URL', ...(needsToken ? ['TOKEN'] : [])]
  return command === undefined ? undefined : { command, variables }
}

function fileOf(view: CopiedCall): RequestCommand | undefined {
  const call = recordingOfView(view)
  if (typeof call === 'string') return undefined
  return { command: writeRecording({ ignore: USUALLY_IGNORED, calls: [call] }), variables: [] }
}
