/** The names of the forms in which a call can be copied. */

export const COPY_FORM_NAMES = ['curl', 'powershell', 'sdk-v1', 'sdk-v2', 'recording'] as const

export type CopyFormName = (typeof COPY_FORM_NAMES)[number]

export function isCopyForm(name: string): name is CopyFormName {
  return (COPY_FORM_NAMES as readonly string[]).includes(name)
}
