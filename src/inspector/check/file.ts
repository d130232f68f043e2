/** The file with the program of the threads that check values. The build puts it beside the bridge. */
export const CHECKER = new URL('../../../dist/checker.cjs', import.meta.url)
