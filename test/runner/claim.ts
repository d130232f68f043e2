let claims = 0

/** How many files have called it in this process, this one included. */
export function claimProcess(): number {
  return ++claims
}
