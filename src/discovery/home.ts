/** The folder of whoever runs this. */
import { homedir, userInfo } from 'node:os'

/** HOME, or where that is empty, what the system knows of its user; undefined where nobody knows. */
export function homeFolder(): string | undefined {
  try {
    return homedir() || userInfo().homedir || undefined
  } catch {
    // A container may run as a user whom nothing names.
    return undefined
  }
}
