/** The home folder of the user who runs the program. */
import { homedir, userInfo } from 'node:os'

/** HOME, or the home folder in the user database; undefined if neither is known. */
export function homeFolder(): string | undefined {
  try {
    return homedir() || userInfo().homedir || undefined
  } catch {
    // A container may run as a user without an entry in the user database.
    return undefined
  }
}
