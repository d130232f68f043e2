/** The door to the inspector: nothing else imports it, and it is loaded when a command first needs it. */

export type * from '../inspector/parts.js'

export type InspectorParts = Awaited<ReturnType<typeof loadInspector>>

export const loadInspector = () => import('../inspector/parts.js')
