/** Content that tools, prompts and resources return: text, and the smallest image and sound there are. */

/** One red pixel. */
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC'
/** No samples, at 8 kHz. */
export const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA='

export type Content =
  | { type: 'text'; text: string }
  | { type: 'image' | 'audio'; data: string; mimeType: string }
  | { type: 'resource'; resource: { uri: string; mimeType: string; text: string } }

export const image = { type: 'image', data: PNG, mimeType: 'image/png' } as const

export function text(value: string) {
  return { type: 'text', text: value } as const
}

export function resource(uri: string, mimeType: string, value: string) {
  return { type: 'resource', resource: { uri, mimeType, text: value } } as const
}

export function textResult(value: string): { content: Content[] } {
  return { content: [text(value)] }
}
