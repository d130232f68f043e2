/** The path of the inspector. */
export const INSPECT = '/inspect'
