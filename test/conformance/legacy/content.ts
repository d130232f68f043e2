/** Content that tools, prompts and resources return: text, and the smallest image and sound there are. */
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'

/** One red pixel. */
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC'
/** No samples, at 8 kHz. */
export const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA='

export const image = { type: 'image', data: PNG, mimeType: 'image/png' } as const

export function text(value: string) {
  return { type: 'text', text: value } as const
}

export function textResult(value: string): CallToolResult {
  return { content: [text(value)] }
}
