/** Pinned calls, which stay in the memory of the bridge, and the button that clears the rest of it. */
import { html } from 'htm/preact'
import { followAnew, fromBridge } from './feed.js'
import { pinned, place, say, selected, selectedCall, setPinned, source } from './state.js'

/** Reads which calls are pinned, after the given change. */
export async function lookAtPins(change?: { call: string; isPinned: boolean }): Promise<void> {
  const query = change ? `?${new URLSearchParams({ call: change.call })}` : ''
  const method = change ? (change.isPinned ? 'POST' : 'DELETE') : 'GET'
  const { calls, error } = await answerOf(`pins${query}`, method)
  if (calls) setPinned(calls)
  else if (change) say(error?.message ?? 'The bridge did not pin the call')
}

/** Pins the selected call, or unpins it. */
export function togglePin(): void {
  const call = selectedCall.value?.call
  if (!call || source.value.kind !== 'live') return
  lookAtPins({ call: call.id, isPinned: !pinned.value.has(call.id) }).catch(() => say(NO_ANSWER))
}

async function answerOf(path: string, method: string) {
  const response = await fromBridge(path, { method })
  return (await response.json()) as { calls?: string[]; error?: { message?: string } }
}

const NO_ANSWER = 'The bridge does not answer'

async function clear(): Promise<void> {
  const { error } = await answerOf('clear', 'POST')
  if (error) return say(error.message ?? NO_ANSWER)
  selected.value = undefined
  followAnew()
}

/** The buttons that pin the selected call, and clear the memory. */
export function Keeping() {
  if (source.value.kind !== 'live' || place.value !== 'calls') return null
  const id = selectedCall.value?.call?.id
  const isPinned = id !== undefined && pinned.value.has(id)
  return html`
    ${id !== undefined && html`<button type="button" aria-pressed=${isPinned ? 'true' : 'false'} title="A pinned call stays in the memory of the bridge" onClick=${togglePin}>${isPinned ? 'Unpin call' : 'Pin call'}</button>`}
    <button type="button" title="Deletes recorded events for all viewers, except those of pinned and running calls" onClick=${() => clear().catch(() => say(NO_ANSWER))}>Clear</button>
  `
}
